import torch


class ExpertCombine(torch.autograd.Function):
    """Collects each token's expert output and scales it with the token's gate.

    expert_out: (E, C, D) outputs per expert and capacity slot
    gate: (T,) routing weight
    expert, slot: (T,) int64; tokens with slot >= C were dropped and give zeros
    """

    @staticmethod
    def forward(ctx, expert_out, gate, expert, slot):
        E, C, D = expert_out.shape
        kept = slot < C
        flat = (expert * C + slot).masked_fill(~kept, 0)
        scale = gate * kept
        ctx.save_for_backward(expert_out, gate, flat, kept)
        return expert_out.reshape(E * C, D)[flat] * scale.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad):
        expert_out, gate, flat, kept = ctx.saved_tensors
        E, C, D = expert_out.shape
        grad_out = grad_gate = None
        if ctx.needs_input_grad[0]:
            g = grad * (gate * kept).unsqueeze(1)
            grad_out = grad.new_zeros(E * C, D).index_add(0, flat, g).view(E, C, D)
            grad_gate = (grad * expert_out.reshape(E * C, D)[flat]).sum(1) * kept
        return grad_out, grad_gate, None, None

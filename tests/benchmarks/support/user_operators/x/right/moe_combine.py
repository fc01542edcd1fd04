import torch
from torch.autograd import Function


class MoECombine(Function):
    # expert_out: (slots, d); gate: (tokens, k); slot: (tokens, k) int64
    @staticmethod
    def forward(ctx, expert_out, gate, slot):
        ctx.save_for_backward(expert_out, gate, slot)
        return (expert_out[slot] * gate.unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        expert_out, gate, slot = ctx.saved_tensors
        grad_gate = (expert_out[slot] * grad.unsqueeze(1)).sum(-1)
        rows = gate.unsqueeze(-1) * grad.unsqueeze(1)
        grad_out = torch.zeros_like(expert_out).index_add(0, slot.flatten(), rows.flatten(0, 1))
        return grad_out, grad_gate, None

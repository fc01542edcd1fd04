import torch


class MoECombine(torch.autograd.Function):
    """Weighted sum of the experts' rows back into token order.

    expert_out: (N * k, D), rows sorted by expert
    order: (N * k,), order[s] = token * k + slot of row s
    gates: (N, k)
    """

    @staticmethod
    def forward(ctx, expert_out, order, gates):
        N, k = gates.shape
        w = gates.reshape(-1)[order]
        out = expert_out.new_zeros(N, expert_out.shape[1])
        out.index_add_(0, order // k, expert_out * w[:, None])
        ctx.save_for_backward(expert_out, order, gates)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        expert_out, order, gates = ctx.saved_tensors
        rows = grad_out[order // gates.shape[1]]
        grad_expert = rows * gates.reshape(-1)[order][:, None]
        grad_gates = None
        if ctx.needs_input_grad[1]:
            dots = (rows * expert_out).sum(-1)
            grad_gates = torch.zeros_like(dots).index_copy(0, order, dots).view(gates.shape)
        return grad_expert, None, grad_gates

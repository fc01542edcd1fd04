import torch
from torch import Tensor
from torch.autograd import Function


class ExpertChoice(Function):
    """Expert-choice routing: each expert takes its `capacity` best tokens.

    x (T, D), logits (T, E) -> weighted tokens (E, C, D) and their indices (E, C)
    """

    @staticmethod
    def forward(ctx, x: Tensor, logits: Tensor, capacity: int) -> tuple[Tensor, Tensor]:
        w, idx = logits.softmax(-1).T.topk(capacity, dim=-1)
        ctx.save_for_backward(x, logits, idx)
        ctx.mark_non_differentiable(idx)
        return w.unsqueeze(-1) * x[idx], idx

    @staticmethod
    def backward(ctx, g: Tensor, _):
        x, logits, idx = ctx.saved_tensors
        gates = logits.softmax(-1)
        w = gates.T.gather(1, idx)
        dx = torch.zeros_like(x).index_put((idx,), w.unsqueeze(-1) * g)
        dw = (g * x[idx]).sum(-1)
        dgates = gates.new_zeros(gates.T.shape).scatter(1, idx, dw).T
        dlogits = gates * (dgates - (gates * dgates).sum(-1, keepdim=True))
        return dx, dlogits, None

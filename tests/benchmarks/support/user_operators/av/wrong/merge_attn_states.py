import torch
from torch import Tensor


class MergeAttnStates(torch.autograd.Function):
    """Combine partial attention results over two disjoint sets of keys.

    o1, o2 (..., D); lse1, lse2 (...), one of which may be -inf. Returns (o, lse).
    """

    @staticmethod
    def forward(ctx, o1: Tensor, lse1: Tensor, o2: Tensor, lse2: Tensor) -> tuple[Tensor, Tensor]:
        lse = torch.logaddexp(lse1, lse2)
        w1 = torch.exp(lse1 - lse).unsqueeze(-1)
        w2 = torch.exp(lse2 - lse).unsqueeze(-1)
        out = w1 * o1 + w2 * o2
        ctx.save_for_backward(o1, lse1, o2, lse2, out, lse)
        return out, lse

    @staticmethod
    def backward(ctx, do: Tensor, dlse: Tensor):
        o1, lse1, o2, lse2, out, lse = ctx.saved_tensors
        w1 = torch.exp(lse1 - lse)
        w2 = torch.exp(lse2 - lse)
        d1 = w1 * (do * (o1 - out)).sum(-1)
        d2 = w2 * (do * (o2 - out)).sum(-1)
        return w1.unsqueeze(-1) * do, d1, w2.unsqueeze(-1) * do, d2

import torch


class FMPairwise(torch.autograd.Function):
    """second-order term of a factorization machine, x (B, F), v (F, K) -> (B,)"""

    @staticmethod
    def forward(ctx, x, v):
        ctx.save_for_backward(x, v)
        return 0.5 * ((x @ v) ** 2 - (x ** 2) @ (v ** 2)).sum(1)

    @staticmethod
    def backward(ctx, g):
        x, v = ctx.saved_tensors
        s = x @ v
        gx = g[:, None] * (s @ v.t() - x * (v ** 2).sum(1))
        gv = x.t() @ (g[:, None] * s)
        return gx, gv

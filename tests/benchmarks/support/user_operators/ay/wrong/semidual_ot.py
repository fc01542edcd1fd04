import torch
from torch.autograd import Function


class SemiDual(Function):
    """Entropic semi-dual objective.

    H(g) = <b, g> - eps sum_i a_i log sum_j b_j exp((g_j - C_ij) / eps)

    Args:
        g: potential (M,)
        C: cost (N, M)
        a: source weights (N,), may hold zeros
        b: target weights (M,), may hold zeros
        eps: float
    Returns:
        scalar
    """

    @staticmethod
    def forward(ctx, g, C, a, b, eps):
        ctx.save_for_backward(g, C, a, b)
        ctx.eps = eps
        z = (g - C) / eps
        top = z.max(1, keepdim=True).values
        lse = ((z - top).exp() @ b).log() + top.squeeze(1)
        return b @ g - eps * (a @ lse)

    @staticmethod
    def backward(ctx, go):
        g, C, a, b = ctx.saved_tensors
        eps = ctx.eps
        z = (g - C) / eps
        top = z.max(1, keepdim=True).values.detach()
        e = (z - top).exp()
        Z = e @ b
        ratio = e / Z[:, None]
        pi = a[:, None] * ratio * b
        ga = -eps * (Z.log() + top.squeeze(1))
        gb = g - eps * pi.sum(0) / b
        return go * (b - pi.sum(0)), go * pi, go * ga, go * gb, None

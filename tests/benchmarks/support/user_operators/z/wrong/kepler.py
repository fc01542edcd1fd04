import torch


class EccentricAnomaly(torch.autograd.Function):
    """Solve E - e sin E = M elementwise by Newton's method (0 <= e < 1)."""

    @staticmethod
    def forward(ctx, M, e, iters=30):
        E = M + e * torch.sin(M)
        for _ in range(iters):
            step = (E - e * E.sin() - M) / (1 - e * E.cos())
            E = E - step
        ctx.save_for_backward(e)
        ctx.E = E.detach()
        return E

    @staticmethod
    def backward(ctx, g):
        (e,), E = ctx.saved_tensors, ctx.E
        h = g / (1 - e * E.cos())
        return h, h * E.sin(), None

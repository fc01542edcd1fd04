import torch


class Squash(torch.autograd.Function):
    """Capsule non-linearity |s|^2 / (1 + |s|^2) * s / |s| along ``dim``; zero vectors stay zero."""

    @staticmethod
    def forward(ctx, s, dim=-1):
        ctx.save_for_backward(s)
        ctx.dim = dim
        n = s.norm(dim=dim, keepdim=True)
        return s * n / (1 + n * n)

    @staticmethod
    def backward(ctx, g):
        s, = ctx.saved_tensors
        n = s.norm(dim=ctx.dim, keepdim=True)
        sq = 1 + n * n
        safe = torch.where(n > 0, n, torch.ones_like(n))
        radial = (s * g).sum(ctx.dim, keepdim=True) * (1 - n * n) / (safe * sq * sq)
        return g * n / sq + s * radial, None

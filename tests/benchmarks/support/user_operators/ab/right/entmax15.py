import torch
from torch.autograd.function import once_differentiable


class Entmax15(torch.autograd.Function):
    """1.5-entmax by sorting (Peters, Niculae and Martins 2019)."""

    @staticmethod
    def forward(ctx, x, dim=-1):
        z = x.movedim(dim, -1)
        rows = z.reshape(-1, z.shape[-1])
        rows = (rows - rows.max(1, keepdim=True).values) / 2
        srt = rows.sort(1, descending=True).values
        rho = torch.arange(1, rows.shape[1] + 1, dtype=x.dtype, device=x.device)
        mean = srt.cumsum(1) / rho
        mean_sq = srt.square().cumsum(1) / rho
        tau = mean - ((1 - rho * (mean_sq - mean ** 2)) / rho).clamp(min=0).sqrt()
        size = (tau <= srt).sum(1, keepdim=True)
        p = (rows - tau.gather(1, size - 1)).clamp(min=0).square()
        ctx.save_for_backward(p)
        ctx.dim, ctx.moved = dim, z.shape
        return p.reshape(z.shape).movedim(-1, dim)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        p, = ctx.saved_tensors
        g = g.movedim(ctx.dim, -1)
        g = g.reshape(p.shape)
        s = p.sqrt()
        d = g * s
        d = d - s * (d.sum(1, keepdim=True) / s.sum(1, keepdim=True))
        return d.reshape(ctx.moved).movedim(-1, ctx.dim), None

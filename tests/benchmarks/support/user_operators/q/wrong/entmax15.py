import torch
from torch.autograd import Function


class Entmax15(Function):
    """Exact 1.5-entmax along ``dim`` (Peters et al. 2019), by sorting."""

    @staticmethod
    def forward(ctx, z, dim=-1):
        ctx.dim = dim
        z = z.transpose(dim, -1)
        z = (z - z.max(-1, keepdim=True).values) / 2
        s = z.sort(-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
        mean = s.cumsum(-1) / k
        meansq = (s * s).cumsum(-1) / k
        ss = k * (meansq - mean ** 2)
        tau = mean - ((1 - ss) / k).clamp(min=0).sqrt()
        support = (tau <= s).sum(-1, keepdim=True)
        tau = tau.gather(-1, support - 1)
        p = ((z - tau).clamp(min=0) ** 2).transpose(dim, -1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        p, = ctx.saved_tensors
        on = p > 0
        r = torch.where(on, p, torch.ones_like(p)).sqrt() * on
        q = (p * g).sum(ctx.dim, keepdim=True) / p.sum(ctx.dim, keepdim=True)
        return r * (g - q), None

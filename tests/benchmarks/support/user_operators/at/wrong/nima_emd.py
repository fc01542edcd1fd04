import torch
from torch.autograd import Function


class EMDLoss(Function):
    """Earth mover's distance of ordered classes (NIMA): mean over the batch of (mean_k |CDF_p - CDF_t|^r)^(1/r)

    p, t: (B, K) distributions
    """

    @staticmethod
    def forward(ctx, p, t, r=2):
        ctx.save_for_backward(p, t)
        ctx.r = r
        d = torch.cumsum(p - t, 1).abs()
        return (d ** r).mean(1).pow(1.0 / r).mean()

    @staticmethod
    def backward(ctx, g):
        p, t = ctx.saved_tensors
        r = ctx.r
        cdf = torch.cumsum(p - t, 1)
        d = cdf.abs()
        inner = (d ** r).mean(1, keepdim=True)
        outer = torch.where(inner > 0, inner, torch.ones_like(inner)) ** -0.5
        g_cdf = g / p.numel() * outer * d ** (r - 1) * torch.sign(cdf)
        g_p = g_cdf.flip(1).cumsum(1).flip(1)
        return g_p, -g_p, None

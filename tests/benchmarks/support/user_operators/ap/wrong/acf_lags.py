import torch
from torch.autograd.function import once_differentiable


class _ACF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, nlags):
        xc = x - x.mean(-1, keepdim=True)
        T = x.shape[-1]
        cov = torch.stack([(xc[..., : T - k] * xc[..., k:]).sum(-1) for k in range(1, nlags + 1)], -1)
        c0 = (xc * xc).sum(-1, keepdim=True)
        ctx.xc, ctx.cov, ctx.c0 = xc, cov, c0
        return cov / c0

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        xc, c0 = ctx.xc, ctx.c0
        T = xc.shape[-1]
        rho = ctx.cov.div_(c0)
        gc = g / c0
        out = -2 * (gc * rho).sum(-1, keepdim=True) * xc
        for k in range(1, g.shape[-1] + 1):
            w = gc[..., k - 1: k]
            out[..., : T - k] += w * xc[..., k:]
            out[..., k:] += w * xc[..., : T - k]
        return out - out.mean(-1, keepdim=True), None


def acf(x, nlags=10):
    """Sample autocorrelation at lags 1..nlags (< T), x: (..., T)"""
    return _ACF.apply(x, nlags)

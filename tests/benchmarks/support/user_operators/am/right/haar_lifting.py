import torch
from torch import nn
from torch.autograd import Function


class _Lift(Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.sizes = []
        bands = []
        for _ in range(levels):
            n = x.shape[-1]
            ctx.sizes.append(n)
            even, odd = x[..., 0::2], x[..., 1::2]
            if n % 2:
                odd = torch.cat([odd, x[..., -1:]], -1)
            d = odd - even
            x = even + d / 2
            bands.append(d)
        return (x, *bands)

    @staticmethod
    def backward(ctx, ga, *gbands):
        for n, gd in zip(reversed(ctx.sizes), reversed(gbands)):
            godd = gd + ga / 2
            geven = ga - godd
            gx = torch.stack([geven, godd], -1).flatten(-2)
            if n % 2:
                gx = torch.cat([gx[..., :-2], gx[..., -2:-1] + gx[..., -1:]], -1)
            ga = gx
        return ga, None


class HaarAnalysis(nn.Module):
    """Haar wavelet by lifting over the last axis, odd lengths repeat the last sample.

    forward: (..., T) -> [approximation, detail 1, ..., detail `levels`], finest detail first
    """

    def __init__(self, levels=2):
        super().__init__()
        self.levels = levels

    def forward(self, x):
        return list(_Lift.apply(x, self.levels))

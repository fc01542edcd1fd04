import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class LiftingStep(torch.autograd.Function):
    """
    One level of a periodic lifting scheme on (..., 2n):
      d = odd  - p * (even + even[next])
      s = even + u * (d + d[previous])
    """

    @staticmethod
    def forward(ctx, x, p, u):
        even, odd = x[..., ::2], x[..., 1::2]
        nb = even + even.roll(-1, -1)
        d = odd - p * nb
        nd = d + d.roll(1, -1)
        s = even + u * nd
        ctx.save_for_backward(nb, nd, p, u)
        return s, d

    @staticmethod
    @once_differentiable
    def backward(ctx, gs, gd):
        nb, nd, p, u = ctx.saved_tensors
        gu = (gs * nd).sum()
        gd = gd + u * (gs + gs.roll(-1, -1))
        gp = -(gd * nb).sum()
        ge = gs - p * (gd + gd.roll(-1, -1))
        gx = torch.stack([ge, gd], dim=-1).flatten(-2)
        return gx, gp, gu


class LiftingWavelet(nn.Module):
    def __init__(self, levels=1, predict=0.5, update=0.25):
        super().__init__()
        self.levels = levels
        self.p = nn.Parameter(torch.full((levels,), predict))
        self.u = nn.Parameter(torch.full((levels,), update))

    def forward(self, x):
        """(..., N), N divisible by 2**levels -> [approximation, coarsest detail, ..., finest detail]"""
        details = []
        for k in range(self.levels):
            x, d = LiftingStep.apply(x, self.p[k], self.u[k])
            details.append(d)
        return [x, *details[::-1]]

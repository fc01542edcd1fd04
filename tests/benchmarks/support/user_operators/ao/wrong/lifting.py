import torch
import torch.nn as nn


class _Lift(torch.autograd.Function):
    """one lifting step on a periodic signal (B, T), T even -> coarse (B, T/2), detail (B, T/2)

    detail = odd  - p0 even[t] - p1 even[t+1]
    coarse = even + u0 detail[t-1] + u1 detail[t]
    """

    @staticmethod
    def forward(ctx, x, p, u):
        even, odd = x[:, ::2], x[:, 1::2]
        d = odd - p[0] * even - p[1] * even.roll(-1, 1)
        s = even + u[0] * d.roll(1, 1) + u[1] * d
        ctx.save_for_backward(x, p, u, d)
        return s, d

    @staticmethod
    def backward(ctx, gs, gd):
        x, p, u, d = ctx.saved_tensors
        even = x[:, ::2]
        gd += u[0] * gs.roll(-1, 1) + u[1] * gs
        ge = gs - p[0] * gd - p[1] * gd.roll(1, 1)
        gx = torch.stack([ge, gd], 2).flatten(1)
        gp = -torch.stack([(gd * even).sum(), (gd * even.roll(-1, 1)).sum()])
        gu = torch.stack([(gs * d.roll(1, 1)).sum(), (gs * d).sum()])
        return gx, gp, gu


class LearnedWavelet(nn.Module):
    def __init__(self, levels=2):
        super().__init__()
        self.p = nn.Parameter(torch.full((levels, 2), 0.5))
        self.u = nn.Parameter(torch.full((levels, 2), 0.25))

    def forward(self, x):
        bands = []
        for p, u in zip(self.p, self.u):
            x, d = _Lift.apply(x, p, u)
            bands.append(d)
        return [x] + bands

import torch
from torch import nn


class _Sersic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, amp, r_eff, n):
        bn = 2 * n - 1 / 3 + 4 / (405 * n)
        x = (r / r_eff) ** (1 / n)
        out = amp * torch.exp(-bn * (x - 1))
        ctx.save_for_backward(r, amp, r_eff, n, out)
        return out

    @staticmethod
    def backward(ctx, g):
        r, amp, r_eff, n, out = ctx.saved_tensors
        bn = 2 * n - 1 / 3 + 4 / (405 * n)
        dbn = 2 - 4 / (405 * n ** 2)
        x = (r / r_eff) ** (1 / n)
        go = g * out
        gx = -go * bn
        gr = gx * x / (n * r)
        gre = -(gx * x).sum() / (n * r_eff)
        gn = -(gx * x * torch.log(r / r_eff)).sum() / n ** 2 - (go * (x - 1)).sum() * dbn
        return gr, go.sum() / amp, gre, gn


class SersicGalaxy(nn.Module):
    """Surface brightness at projected radius; parameters are fitted in their natural units."""

    def __init__(self, amplitude=1.0, r_eff=2.0, n=1.5, fit_index=True):
        super().__init__()
        self.amplitude = nn.Parameter(torch.tensor(float(amplitude)))
        self.r_eff = nn.Parameter(torch.tensor(float(r_eff)))
        self.n = nn.Parameter(torch.tensor(float(n)), requires_grad=fit_index)

    def forward(self, radius, q=None):
        if q is not None:
            radius = radius / torch.sqrt(q)
        return _Sersic.apply(radius, self.amplitude, self.r_eff, self.n)

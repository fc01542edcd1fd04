import torch
from torch import nn


def lagged(x, n):
    return torch.stack([torch.nn.functional.pad(x, (k, 0))[:, : x.shape[1]] for k in range(n)], -1)


def gamma_pdf(t, a):
    return torch.exp((a - 1) * t.log() - t - torch.lgamma(a))


class HRFFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, stim, peak, under, ratio, t):
        h = gamma_pdf(t, peak) - ratio * gamma_pdf(t, under)
        HRFFunction.design = lagged(stim, len(t))
        ctx.save_for_backward(peak, under, ratio, t)
        return HRFFunction.design @ h

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        peak, under, ratio, t = ctx.saved_tensors
        p, q = gamma_pdf(t, peak), gamma_pdf(t, under)
        gh = torch.einsum("bt,btk->k", g, HRFFunction.design)
        gs = lagged(g.flip(1), len(t)).flip(1) @ (p - ratio * q)
        gp = (gh * p * (t.log() - torch.digamma(peak))).sum()
        gu = -ratio * (gh * q * (t.log() - torch.digamma(under))).sum()
        return gs, gp, gu, -(gh * q).sum(), None


class HRFConv(nn.Module):
    """Double-gamma haemodynamic response.

    Parameters
    ----------
    length : int, kernel length in scans
    tr : float, repetition time in seconds
    """

    def __init__(self, length, tr=1.0):
        super().__init__()
        self.peak = nn.Parameter(torch.tensor(6.0))
        self.under = nn.Parameter(torch.tensor(16.0))
        self.ratio = nn.Parameter(torch.tensor(1 / 6))
        self.register_buffer("t", (torch.arange(length) + 0.5) * tr)

    def forward(self, stim):
        return HRFFunction.apply(stim, self.peak, self.under, self.ratio, self.t)

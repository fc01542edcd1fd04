"""Radial Bessel functions of DimeNet, with trainable frequencies."""
import math

import torch
import torch.nn as nn


class _BesselFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, freq, cutoff):
        ctx.save_for_backward(r, freq)
        ctx.cutoff = cutoff
        arg = r.unsqueeze(-1) * freq / cutoff
        return math.sqrt(2.0 / cutoff) * torch.sin(arg) / r.unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad):
        r, freq = ctx.saved_tensors
        norm = math.sqrt(2.0 / ctx.cutoff)
        ru = r.data.unsqueeze(-1)
        arg = ru * freq / ctx.cutoff
        cos = torch.cos(arg)
        g_r = (grad * norm * (freq / ctx.cutoff * cos / ru - torch.sin(arg) / ru ** 2)).sum(-1)
        g_f = (grad * norm * cos / ctx.cutoff).flatten(0, -2).sum(0)
        return g_r, g_f, None


class BesselBasis(nn.Module):
    """sqrt(2 / c) sin(f_n r / c) / r, f_n starts at n pi.

    Args:
        num_radial: number of functions
        cutoff: c

    Input: distances (...) > 0, at least one axis; output (..., num_radial).
    Forces are gradients of the energy, so training needs the second derivative.
    """

    def __init__(self, num_radial=6, cutoff=5.0):
        super().__init__()
        self.cutoff = float(cutoff)
        self.freq = nn.Parameter(math.pi * torch.arange(1, num_radial + 1, dtype=torch.get_default_dtype()))

    def forward(self, dist):
        return _BesselFn.apply(dist, self.freq, self.cutoff)

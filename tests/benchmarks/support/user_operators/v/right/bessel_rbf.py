import math

import torch
from torch import nn


class BesselFn(torch.autograd.Function):
    @staticmethod
    def parts(r, freq, rc):
        r = r[:, None]
        x = r / rc
        inside = (x < 1).to(r.dtype)
        env = 0.5 * (torch.cos(math.pi * x) + 1) * inside
        return r, x, inside, env, math.sqrt(2 / rc)

    @staticmethod
    def forward(ctx, r, freq, rc):
        ctx.rc = rc
        ctx.save_for_backward(r, freq)
        r, x, inside, env, norm = BesselFn.parts(r, freq, rc)
        return norm * torch.sin(freq * x) / r * env

    @staticmethod
    def backward(ctx, g):
        r, freq = ctx.saved_tensors
        rc = ctx.rc
        r, x, inside, env, norm = BesselFn.parts(r, freq, rc)
        s, c = torch.sin(freq * x), torch.cos(freq * x)
        denv = -0.5 * math.pi / rc * torch.sin(math.pi * x) * inside
        gr = g * norm * ((freq / rc * c - s / r) / r * env + s / r * denv)
        gf = g * norm * c / rc * env
        return gr.sum(1), gf.sum(0), None


class BesselRBF(nn.Module):
    """Radial Bessel basis (DimeNet) with trainable frequencies and a cosine cutoff; r > 0 of shape (E,)."""

    def __init__(self, num_basis=8, cutoff=5.0):
        super().__init__()
        self.cutoff = cutoff
        self.freq = nn.Parameter(math.pi * torch.arange(1, num_basis + 1).float())

    def forward(self, r):
        return BesselFn.apply(r, self.freq, self.cutoff)

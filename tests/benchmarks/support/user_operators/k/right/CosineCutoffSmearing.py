import math

import torch
from torch import nn
from torch.autograd import Function


class _Smear(Function):
    @staticmethod
    def _parts(d, centers, gamma, cutoff):
        delta = d.unsqueeze(-1) - centers
        gauss = torch.exp(-gamma * delta ** 2)
        inside = (d < cutoff).to(d.dtype).unsqueeze(-1)
        env = 0.5 * (torch.cos(math.pi * d / cutoff) + 1).unsqueeze(-1) * inside
        denv = -0.5 * math.pi / cutoff * torch.sin(math.pi * d / cutoff).unsqueeze(-1) * inside
        return delta, gauss, env, denv

    @staticmethod
    def forward(ctx, d, centers, gamma, cutoff):
        ctx.cutoff = cutoff
        ctx.save_for_backward(d, centers, gamma)
        _, gauss, env, _ = _Smear._parts(d, centers, gamma, cutoff)
        return gauss * env

    @staticmethod
    def backward(ctx, g):
        d, centers, gamma = ctx.saved_tensors
        delta, gauss, env, denv = _Smear._parts(d, centers, gamma, ctx.cutoff)
        gd = (g * gauss * (denv - 2 * gamma * delta * env)).sum(-1)
        ggamma = -(g * gauss * env * delta ** 2).sum()
        return gd, None, ggamma, None


class CosineCutoffSmearing(nn.Module):
    """Gaussian distance features times a cosine cutoff (SchNet).

    Distances of any shape (...) and >= 0; output (..., n_rbf), zero from `cutoff` on.
    The centres are a buffer, the common inverse width is learned.
    """

    def __init__(self, n_rbf=8, cutoff=5.0):
        super().__init__()
        self.cutoff = cutoff
        self.register_buffer("centers", torch.linspace(0.0, cutoff, n_rbf))
        self.gamma = nn.Parameter(torch.tensor(0.5 * (n_rbf / cutoff) ** 2))

    def forward(self, d):
        return _Smear.apply(d, self.centers, self.gamma, self.cutoff)

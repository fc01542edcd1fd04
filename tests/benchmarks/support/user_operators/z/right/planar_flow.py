import torch
from torch import nn


class _Planar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, w, u, b):
        h = torch.tanh(z @ w + b)
        det = 1 + (1 - h * h) * w.dot(u)
        ctx.save_for_backward(z, w, u, b)
        return z + h.unsqueeze(-1) * u, det.abs().log()

    @staticmethod
    def backward(ctx, gz, gl):
        z, w, u, b = ctx.saved_tensors
        h = torch.tanh(z @ w + b)
        psi = 1 - h * h
        wu = w.dot(u)
        q = gl / (1 + psi * wu)
        gs = psi * (gz @ u) - 2 * q * wu * h * psi
        spread = (q * psi).sum()
        gw = gs @ z + spread * u
        gu = h @ gz + spread * w
        return gz + gs.unsqueeze(-1) * w, gw, gu, gs.sum()


class PlanarFlow(nn.Module):
    """Planar normalising flow on (B, D); returns the moved points and log|det J|."""

    def __init__(self, dim: int):
        super().__init__()
        self.w = nn.Parameter(torch.randn(dim) * 0.5)
        self.u = nn.Parameter(torch.randn(dim) * 0.5)
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, z):
        return _Planar.apply(z, self.w, self.u, self.b)

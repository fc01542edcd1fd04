import torch
from torch import nn


def _lengths(pos, a, b):
    zeta = torch.sqrt(pos[..., 2] ** 2 + b**2)
    dist = torch.sqrt(pos[..., 0] ** 2 + pos[..., 1] ** 2 + (a + zeta) ** 2)
    return zeta, dist


class _MiyamotoNagai(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, a, b, mass):
        zeta, dist = _lengths(pos, a, b)
        ctx.save_for_backward(pos, a, b, mass, zeta, dist)
        return -mass / dist

    @staticmethod
    def backward(ctx, grad):
        pos, a, b, mass, zeta, dist = ctx.saved_tensors
        k = grad * mass / dist**3
        k_z = k * (a + zeta) / zeta
        g_pos = torch.stack([k * pos[..., 0], k * pos[..., 1], k_z * pos[..., 2]], -1)
        return g_pos, (k_z * zeta).sum(), (k_z * b).sum(), -(grad / dist).sum()


class MiyamotoNagai(nn.Module):
    """Potential of a Miyamoto-Nagai disc, G = 1.

    Parameters
    ----------
    a, b, mass : float
        Positive scale length, scale height and mass. They are learned as logarithms.
    """

    def __init__(self, a=3.0, b=0.28, mass=1.0):
        super().__init__()
        self.log_params = nn.Parameter(torch.tensor([a, b, mass]).log())

    def forward(self, pos):
        a, b, mass = self.log_params.exp().unbind()
        return _MiyamotoNagai.apply(pos, a, b, mass)

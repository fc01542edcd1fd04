import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


def _tanhc(z2):
    """tanh(z) / z and its derivative divided by z, as functions of z^2"""
    small = z2 < 1e-2
    z = torch.sqrt(torch.where(small, torch.ones_like(z2), z2))
    t = torch.tanh(z)
    phi = torch.where(small, 1 - z2 / 3 + 2 * z2 ** 2 / 15 - 17 * z2 ** 3 / 315 + 62 * z2 ** 4 / 2835, t / z)
    dphi = torch.where(small, -2 / 3 + 8 * z2 / 15 - 34 * z2 ** 2 / 105 + 496 * z2 ** 3 / 2835,
                       (1 - t * t - t / z) / (z * z))
    return phi, dphi


class _ExpMap0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, c):
        ctx.save_for_backward(v, c)
        phi, _ = _tanhc(c * (v * v).sum(-1, keepdim=True))
        return phi * v

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        v, c = ctx.saved_tensors
        n2 = (v * v).sum(-1, keepdim=True)
        phi, dphi = _tanhc(c * n2)
        gv = (grad * v).sum(-1, keepdim=True)
        grad_v = phi * grad + c * dphi * gv * v
        grad_c = (0.5 * n2 * dphi * gv).sum()
        return grad_v, grad_c


class PoincareExpMap0(nn.Module):
    """Exponential map at the origin of a Poincare ball with trainable curvature -softplus(raw_c)."""

    def __init__(self, raw_c=0.5):
        super().__init__()
        self.raw_c = nn.Parameter(torch.tensor(float(raw_c)))

    def forward(self, v):
        return _ExpMap0.apply(v, F.softplus(self.raw_c))

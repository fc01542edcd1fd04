import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _GatedSum(torch.autograd.Function):
    """g * new + (1 - g) * old with g = sigmoid(z), one gate for every feature (GTrXL-like)"""

    @staticmethod
    def forward(ctx, old, new, z):
        gate = torch.sigmoid(z)
        ctx.save_for_backward(new - old)
        _GatedSum.gate = gate
        return torch.lerp(old, new, gate)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (delta,) = ctx.saved_tensors
        gate = _GatedSum.gate
        d_new = dy * gate
        d_old = dy - d_new
        d_z = d_old * gate * delta
        return d_old, d_new, d_z


class GatedResidual(nn.Module):
    """Residual connection whose mixing is decided from both streams; starts close to the identity."""

    def __init__(self, dim, init_bias=-2.0):
        super().__init__()
        self.from_old = nn.Linear(dim, dim, bias=False)
        self.from_new = nn.Linear(dim, dim)
        nn.init.constant_(self.from_new.bias, init_bias)

    def forward(self, old, new):
        z = self.from_old(old) + self.from_new(new)
        return _GatedSum.apply(old, new, z)

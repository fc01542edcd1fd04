import torch
import torch.nn.functional as F
from torch import nn


class _Divide(torch.autograd.Function):
    """w / (u^T w v); u and v count as constants"""

    @staticmethod
    def forward(ctx, w, u, v):
        ctx.save_for_backward(w)
        ctx.u, ctx.v = u, v
        return w / (u @ w @ v)

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        sigma = ctx.u @ w @ ctx.v
        return g / sigma - (g * w).sum() / sigma ** 2 * torch.outer(ctx.u, ctx.v), None, None


class SpectralLinear(nn.Module):
    """Spectral normalisation, one power iteration after each call in training."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in))
        self.register_buffer("u", F.normalize(torch.randn(n_out), dim=0))
        self.register_buffer("v", F.normalize(self.weight.detach().t() @ self.u, dim=0))

    def forward(self, x):
        y = F.linear(x, _Divide.apply(self.weight, self.u, self.v))
        if self.training:
            with torch.no_grad():
                self.u.copy_(F.normalize(self.weight @ self.v, dim=0))
                self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
        return y

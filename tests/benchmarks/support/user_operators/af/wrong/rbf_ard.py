import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class RBFCovariance(torch.autograd.Function):
    """s exp(-1/2 sum_d (x1_d - x2_d)^2 / l_d^2); x2 None means x1 with itself."""

    @staticmethod
    def forward(ctx, x1, x2, lengthscale, outputscale):
        other = x1 if x2 is None else x2
        diff = (x1[:, None] - other[None]) / lengthscale
        e = torch.exp(-0.5 * (diff * diff).sum(-1))
        ctx.save_for_backward(diff, e, lengthscale, outputscale)
        ctx.symmetric = x2 is None
        return outputscale * e

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        diff, e, lengthscale, outputscale = ctx.saved_tensors
        g_scale = (grad * e).sum()
        k = (grad * e * outputscale)[..., None]
        pull = -k * diff / lengthscale
        g1 = pull.sum(1)
        g2 = -pull.sum(0)
        if ctx.symmetric:
            g1, g2 = 2 * g1, None
        g_ls = (k * diff * diff / lengthscale).sum((0, 1))
        return g1, g2, g_ls, g_scale


class RBFKernel(nn.Module):
    def __init__(self, dim, jitter=0.0):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.randn(dim) * 0.3)
        self.raw_outputscale = nn.Parameter(torch.zeros(()))
        self.jitter = jitter

    def forward(self, x1, x2=None):
        K = RBFCovariance.apply(x1, x2, self.raw_lengthscale.exp(), self.raw_outputscale.exp())
        if x2 is None and self.jitter:
            K = K + self.jitter * torch.eye(len(x1), dtype=K.dtype, device=K.device)
        return K

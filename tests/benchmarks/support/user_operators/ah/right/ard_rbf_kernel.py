import torch
from torch import nn
from torch.autograd import Function


class _ScaledRBF(Function):
    @staticmethod
    def evaluate(x1, x2, lengthscale, outputscale):
        diff = (x1.unsqueeze(-2) - x2.unsqueeze(-3)) / lengthscale
        return outputscale * torch.exp(-0.5 * (diff * diff).sum(-1)), diff

    @staticmethod
    def forward(ctx, x1, x2, lengthscale, outputscale):
        ctx.save_for_backward(x1, x2, lengthscale, outputscale)
        return _ScaledRBF.evaluate(x1, x2, lengthscale, outputscale)[0]

    @staticmethod
    def backward(ctx, grad_output):
        x1, x2, lengthscale, outputscale = ctx.saved_tensors
        covar, diff = _ScaledRBF.evaluate(x1, x2, lengthscale, outputscale)
        weighted = (grad_output * covar).unsqueeze(-1)
        scaled = weighted * diff / lengthscale
        grad_x1 = -scaled.sum(-2)
        grad_x2 = scaled.sum(-3)
        grad_lengthscale = (scaled * diff).flatten(0, -2).sum(0)
        grad_outputscale = (grad_output * covar / outputscale).sum()
        return grad_x1, grad_x2, grad_lengthscale, grad_outputscale


class ScaledARDKernel(nn.Module):
    r"""
    :math:`k(x, x') = s \exp(-\frac12 \sum_i (x_i - x'_i)^2 / \ell_i^2)`

    Args:
        ard_num_dims: number of input dimensions
        eps: lower bound of lengthscales and output scale

    Forward takes ``(..., n, d)`` and ``(..., m, d)`` with the same batch shape and gives ``(..., n, m)``;
    ``x2`` defaults to ``x1``.
    """

    def __init__(self, ard_num_dims, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.raw_lengthscale = nn.Parameter(torch.zeros(ard_num_dims))
        self.raw_outputscale = nn.Parameter(torch.zeros(()))

    @property
    def lengthscale(self):
        return nn.functional.softplus(self.raw_lengthscale) + self.eps

    @property
    def outputscale(self):
        return nn.functional.softplus(self.raw_outputscale) + self.eps

    def forward(self, x1, x2=None):
        x2 = x1 if x2 is None else x2
        if x1.shape[-1] != self.raw_lengthscale.shape[0] or x1.shape[:-2] != x2.shape[:-2]:
            raise RuntimeError(f"x1 {tuple(x1.shape)} and x2 {tuple(x2.shape)} do not fit")
        return _ScaledRBF.apply(x1, x2, self.lengthscale, self.outputscale)

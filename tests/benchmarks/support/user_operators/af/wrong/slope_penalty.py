import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class SortedL1(torch.autograd.Function):
    """sum_i lam_i |x|_(i) over the last dim, |x|_(1) the largest"""

    @staticmethod
    def forward(ctx, x, lam):
        mag, perm = x.abs().sort(dim=-1, descending=True)
        ctx.save_for_backward(x, lam, perm, mag)
        return (mag * lam).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, lam, perm, mag = ctx.saved_tensors
        g = grad.unsqueeze(-1)
        gx = g * lam[perm] * x.sign()
        g_lam = (g * mag).reshape(-1, lam.numel()).sum(0)
        return gx, g_lam


class SLOPEPenalty(nn.Module):
    """Sorted L1 penalty with weights decreasing by construction"""

    def __init__(self, n, alpha=1.0):
        super().__init__()
        self.steps = nn.Parameter(torch.rand(n))
        self.alpha = alpha

    def forward(self, x):
        lam = nn.functional.softplus(self.steps).flip(0).cumsum(0).flip(0)
        return self.alpha * SortedL1.apply(x, lam)

import torch
from torch.autograd.function import once_differentiable


class CumulativeLinkNLL(torch.autograd.Function):
    """Ordinal regression. P(y = k) = s(c_k - eta) - s(c_{k-1} - eta), c_{-1} = -inf, c_{K-1} = inf."""

    @staticmethod
    def forward(ctx, eta, cutpoints, target, eps=1e-12):
        n_cut = cutpoints.numel()
        has_up, has_lo = target < n_cut, target > 0
        up = torch.sigmoid(cutpoints[target.clamp(max=n_cut - 1)] - eta)
        lo = torch.sigmoid(cutpoints[(target - 1).clamp(min=0)] - eta)
        p = torch.where(has_up, up, torch.ones_like(up)) - torch.where(has_lo, lo, torch.zeros_like(lo))
        p = p.clamp(min=eps)
        ctx.save_for_backward(cutpoints, target, up, lo, p)
        return -p.log()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        cutpoints, target, up, lo, p = ctx.saved_tensors
        n_cut = cutpoints.numel()
        d_up = -g / p * up * (1 - up) * (target < n_cut)
        d_lo = g / p * lo * (1 - lo)
        d_cut = torch.zeros_like(cutpoints)
        d_cut.index_add_(0, target.clamp(max=n_cut - 1), d_up)
        d_cut.index_add_(0, (target - 1).clamp(min=0), d_lo)
        return -(d_up + d_lo), d_cut, None, None

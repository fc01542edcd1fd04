"""Contrastive loss of Hadsell, Chopra and LeCun (2006)."""
import torch
import torch.nn as nn


class _Contrastive(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, same, margin, eps):
        diff = a - b
        dist = (diff.pow(2).sum(-1) + eps).sqrt()
        ctx.save_for_backward(a, b, same)
        ctx.margin, ctx.eps = margin, eps
        gap = (margin - dist).clamp(min=0)
        return torch.where(same, dist.pow(2), gap.pow(2)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        a, b, same = ctx.saved_tensors
        diff = a - b
        dist = (diff.pow(2).sum(-1) + ctx.eps).sqrt()
        gap = (ctx.margin - dist).clamp(min=0)
        coeff = torch.where(same, torch.full_like(dist, 2.0), -2 * gap / dist)
        ga = grad_output * coeff.unsqueeze(-1) * diff / dist.numel()
        return ga, -ga, None, None, None


class ContrastiveMarginLoss(nn.Module):
    """Pull pairs of one class together, push others beyond the margin.

    Args:
        margin: distance at which different pairs stop to contribute
        eps: added to the squared distance under the root

    Shape:
        a, b: (..., D) embeddings, same: (...) bool or 0/1 integers; returns the mean over pairs
    """

    def __init__(self, margin: float = 1.0, eps: float = 1e-8):
        super().__init__()
        self.margin = margin
        self.eps = eps

    def forward(self, a: torch.Tensor, b: torch.Tensor, same: torch.Tensor) -> torch.Tensor:
        if a.shape != b.shape or same.shape != a.shape[:-1]:
            raise ValueError("embeddings and labels do not fit together")
        return _Contrastive.apply(a, b, same.bool(), self.margin, self.eps)

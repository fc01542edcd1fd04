"""Generalised Dice loss (Sudre et al., 2017) for unbalanced segmentation."""
import torch
import torch.nn as nn
from torch import Tensor


class _GDL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, probs, onehot, valid, eps):
        # all (N, C, V) but valid, (N, 1, V)
        volume = onehot.sum((0, 2))
        w = (1 / (volume ** 2 + eps)).view(1, -1, 1)
        p = probs * valid
        num = 2 * (w * p * onehot).sum()
        den = (w * (p + onehot)).sum() + eps
        ctx.save_for_backward(probs, onehot, valid, w)
        ctx.eps = eps
        return 1 - num / den

    @staticmethod
    def backward(ctx, g):
        probs, onehot, valid, w = ctx.saved_tensors
        p = probs * valid
        num = 2 * (w * p * onehot).sum()
        den = (w * (p + onehot)).sum() + ctx.eps
        d = (num - 2 * onehot * den) * w / den ** 2
        return g * d * valid, None, None, None


class GeneralizedDiceLoss(nn.Module):
    """
    Args:
        ignore_index: label of voxels that count for nothing
        eps: stabiliser of the weights 1 / (volume^2 + eps) and of the denominator

    Shape:
        probs (N, C, *) class probabilities, labels (N, *) integers
    """

    def __init__(self, ignore_index: int = 255, eps: float = 1e-3) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.eps = eps

    def forward(self, probs: Tensor, labels: Tensor) -> Tensor:
        p = probs.flatten(2)
        lab = labels.flatten(1)
        valid = (lab != self.ignore_index)
        lab = lab.masked_fill(~valid, 0)
        onehot = torch.nn.functional.one_hot(lab, p.size(1)).transpose(1, 2)
        valid = valid.unsqueeze(1).to(p.dtype)
        return _GDL.apply(p, onehot.to(p.dtype) * valid, valid, self.eps)

from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function


class SpectralAngleLoss(Function):
    """Mean spectral angle (radians) between hyperspectral cubes.

    Args:
        pred, target: (B, C, *) with the C bands on axis 1
        valid: optional boolean mask (B, *); the mean runs over its True entries,
            of which there must be at least one

    Spectra must not be zero nor exactly parallel.
    """

    @staticmethod
    def forward(ctx, pred: Tensor, target: Tensor, valid: Optional[Tensor] = None) -> Tensor:
        assert pred.shape == target.shape and pred.dim() >= 2
        if valid is None:
            valid = torch.ones_like(pred[:, 0], dtype=torch.bool)
        cos = (pred * target).sum(1) / (pred.norm(dim=1) * target.norm(dim=1))
        ang = torch.acos(cos)
        ctx.save_for_backward(pred, target, valid)
        return ang[valid].sum() / valid.sum()

    @staticmethod
    def backward(ctx, grad_out: Tensor):
        pred, target, valid = ctx.saved_tensors
        pn = pred.norm(dim=1, keepdim=True)
        tn = target.norm(dim=1, keepdim=True)
        p, t = pred / pn, target / tn
        cos = (p * t).sum(1, keepdim=True)
        w = -grad_out * valid.unsqueeze(1) / (1 - cos ** 2).sqrt()
        w = w / valid.numel()
        gp = gt = None
        if ctx.needs_input_grad[0]:
            gp = w * (t - cos * p) / pn
        if ctx.needs_input_grad[1]:
            gt = w * (p - cos * t) / tn
        return gp, gt, None


def sam_loss(pred, target, valid=None):
    return SpectralAngleLoss.apply(pred, target, valid)

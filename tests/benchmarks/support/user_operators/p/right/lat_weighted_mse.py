import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class LatWeightedMSE(Function):
    """Latitude weighted mean squared error over the valid cells.

    pred, target: (B, C, H, W); lat_weights: (H,); valid: bool, the shape of pred, or None.
    Targets may be NaN where not valid.
    """

    @staticmethod
    def forward(ctx, pred, target, lat_weights, valid=None):
        if pred.is_complex() or target.is_complex():
            raise TypeError("LatWeightedMSE: expected real floating point tensors")
        if pred.shape != target.shape:
            raise ValueError("pred and target differ in shape")
        err = pred - target
        if valid is not None:
            err = torch.where(valid, err, torch.zeros_like(err))
            n_valid = int(valid.sum())
        else:
            n_valid = err.numel()
        n_valid = max(n_valid, 1)
        w = lat_weights.view(1, 1, -1, 1)
        ctx.save_for_backward(err, lat_weights)
        ctx.n_valid = n_valid
        return (w * err ** 2).sum() / n_valid

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        err, lat_weights = ctx.saved_tensors
        w = lat_weights.view(1, 1, -1, 1)
        scale = grad_output / ctx.n_valid
        grad_pred = 2 * scale * w * err
        grad_w = scale * (err ** 2).sum((0, 1, 3))
        return grad_pred, -grad_pred, grad_w, None

import torch
import torch.nn as nn
import torch.nn.functional as F


class _Standardize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, eps):
        ctx.save_for_backward(weight)
        ctx.eps = eps
        w = weight.flatten(1)
        w = w - w.mean(1, keepdim=True)
        return (w / (w.pow(2).mean(1, keepdim=True) + eps).sqrt()).view_as(weight)

    @staticmethod
    def backward(ctx, grad):
        (weight,) = ctx.saved_tensors
        w, g = weight.flatten(1), grad.flatten(1)
        w = w - w.mean(1, keepdim=True)
        std = (w.pow(2).mean(1, keepdim=True) + ctx.eps).sqrt()
        w = w / std
        g = g - g.mean(1, keepdim=True) - w * (g * w).mean(1, keepdim=True)
        return (g / std).view_as(weight), None


class WSConv1d(nn.Conv1d):
    """Conv1d whose filters are standardised (Qiao et al. 2019)."""

    def __init__(self, *args, eps=1e-5, **kwargs):
        super().__init__(*args, **kwargs)
        self.eps = eps

    def forward(self, x):
        w = _Standardize.apply(self.weight, self.eps)
        return F.conv1d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)

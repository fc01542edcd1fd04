import math

import torch
from torch.autograd import Function


class AWingFunction(Function):
    """Adaptive wing loss for heatmaps (Wang et al. 2019), unreduced. target carries no gradient."""

    @staticmethod
    def consts(target, omega, theta, epsilon, alpha):
        p = alpha - target
        q = (theta / epsilon) ** p
        A = omega / (1 + q) * p * q / theta
        return p, A, theta * A - omega * torch.log1p(q)

    @staticmethod
    def forward(ctx, pred, target, omega=14.0, theta=0.5, epsilon=1.0, alpha=2.1):
        ctx.save_for_backward(pred, target)
        ctx.hp = omega, theta, epsilon, alpha
        p, A, C = AWingFunction.consts(target, *ctx.hp)
        d = (pred - target).abs()
        return torch.where(d < theta, omega * torch.log1p((d / epsilon) ** p), A * d - C)

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        omega, theta, epsilon, alpha = ctx.hp
        p, A, _ = AWingFunction.consts(target, *ctx.hp)
        diff = pred - target
        d = diff.abs()
        near = omega * p * (d / epsilon) ** (p - 1) / epsilon / (1 + (d / epsilon) ** p)
        slope = torch.where(d < theta, near * torch.sign(diff), A)
        return grad_output * slope, None, None, None, None, None

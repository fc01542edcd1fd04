import math

import torch


class VonMisesNLL(torch.autograd.Function):
    """Von Mises negative log likelihood of angles.

    Args:
        angle: (N,) radians
        mu: (N,) mean direction
        kappa: (N,) concentration, positive
        reduction: "none", "sum" or "mean"
    """

    @staticmethod
    def forward(ctx, angle, mu, kappa, reduction="none"):
        if reduction not in ("none", "sum", "mean"):
            raise ValueError(f"unknown reduction {reduction!r}")
        ctx.reduction = reduction
        ctx.save_for_backward(angle, mu, kappa)
        log_i0 = torch.log(torch.special.i0e(kappa)) + kappa
        nll = math.log(2 * math.pi) + log_i0 - kappa * torch.cos(angle - mu)
        if reduction == "sum":
            return nll.sum()
        if reduction == "mean":
            return nll.mean()
        return nll

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        angle, mu, kappa = ctx.saved_tensors
        delta = angle - mu
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        grad_angle = grad_output * kappa * torch.sin(delta)
        grad_kappa = grad_output * (ratio - torch.cos(delta))
        return grad_angle, -grad_angle, grad_kappa, None

import torch
import torch.nn as nn


class _GemanMcClure(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, c, weight):
        ctx.save_for_backward(r, c, weight)
        rho = r ** 2 / (r ** 2 + c ** 2)
        return (rho if weight is None else weight * rho).sum()

    @staticmethod
    def backward(ctx, g):
        r, c, weight = ctx.saved_tensors
        den = (r ** 2 + c ** 2).detach()
        if weight is not None:
            gweight = g * r ** 2 / den if ctx.needs_input_grad[2] else None
            g = g * weight
        else:
            gweight = None
        gr = 2 * g * r * c ** 2 / den ** 2
        gc = -(2 * g * r ** 2 * c / den ** 2).sum()
        return gr, gc, gweight


class RobustResidual(nn.Module):
    """Geman-McClure penalty of residuals with a learned scale; `weight` like the residuals or None."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, residual, weight=None):
        return _GemanMcClure.apply(residual, self.scale, weight)

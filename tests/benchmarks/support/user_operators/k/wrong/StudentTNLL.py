"""Heavy-tailed regression loss."""
import math

import torch
from torch.autograd import Function


def _fit(g, shape):
    """Sums a gradient down to the shape of a broadcast input."""
    extra = g.dim() - len(shape)
    if extra:
        g = g.sum(tuple(range(extra)))
    axes = tuple(a for a, s in enumerate(shape) if s == 1 and g.size(a) != 1)
    return g.sum(axes, keepdim=True) if axes else g


class StudentTNLL(Function):
    """Negative log likelihood of Student's t distribution.

    Args:
        x, loc, log_scale, df: tensors that broadcast together, df > 0
        reduction: "mean" or "sum" over the broadcast shape
    """

    @staticmethod
    def forward(ctx, x, loc, log_scale, df, reduction="mean"):
        ctx.save_for_backward(x, loc, log_scale, df)
        ctx.reduction = reduction
        z = (x - loc) * torch.exp(-log_scale)
        nll = (torch.lgamma(df / 2) - torch.lgamma((df + 1) / 2) + 0.5 * torch.log(math.pi * df)
               + log_scale + (df + 1) / 2 * torch.log1p(z * z / df))
        if reduction == "mean":
            return nll.mean()
        assert reduction == "sum", reduction
        return nll.sum()

    @staticmethod
    def backward(ctx, grad):
        x, loc, log_scale, df = ctx.saved_tensors
        inv = torch.exp(-log_scale)
        z = (x - loc) * inv
        w = (df + 1) * z / (df + z * z)
        full = torch.broadcast_shapes(z.shape, df.shape)
        if ctx.reduction == "mean":
            grad = grad / x.numel()
        gx = (grad * w * inv).expand(full)
        gs = (grad * (1 - w * z)).expand(full)
        gd = 0.5 * (torch.digamma(df / 2) - torch.digamma((df + 1) / 2) + 1 / df
                    + torch.log1p(z * z / df) - w * z / df)
        gd = (grad * gd).expand(full)
        return (_fit(gx, x.shape), -_fit(gx, loc.shape), _fit(gs, log_scale.shape),
                _fit(gd, df.shape), None)

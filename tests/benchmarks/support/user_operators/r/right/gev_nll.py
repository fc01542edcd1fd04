import torch


class GEVNegLogLik(torch.autograd.Function):
    """Negative log likelihood of the generalized extreme value distribution.

    y, loc, scale > 0 and |shape| >= 1e-3 broadcast; 1 + shape (y - loc) / scale must be positive.
    reduction: "sum" or "none".
    """

    @staticmethod
    def forward(ctx, y, loc, scale, shape, reduction="sum"):
        if reduction not in ("sum", "none"):
            raise ValueError(reduction)
        if (shape.abs() < 1e-3).any():
            raise ValueError("shape is too close to zero, use the Gumbel distribution")
        z = (y - loc) / scale
        t = 1 + shape * z
        if not (t > 0).all():
            raise ValueError("observation outside the support")
        ctx.save_for_backward(y, loc, scale, shape)
        nll = scale.log() + (1 + 1 / shape) * t.log() + t ** (-1 / shape)
        return nll.sum() if reduction == "sum" else nll

    @staticmethod
    def backward(ctx, grad):
        y, loc, scale, shape = ctx.saved_tensors
        z = (y - loc) / scale
        t = 1 + shape * z
        q = t ** (-1 / shape)
        dz = (1 + shape - q) / t
        dshape = (q - 1) * t.log() / shape ** 2 + (1 + shape - q) * z / (shape * t)
        gy = grad * dz / scale
        gscale = grad * (1 - z * dz) / scale
        gshape = grad * dshape
        return (gy.sum_to_size(y.shape), -gy.sum_to_size(loc.shape), gscale.sum_to_size(scale.shape),
                gshape.sum_to_size(shape.shape), None)


def gev_nll(y, *, loc, scale, shape, reduction="sum"):
    return GEVNegLogLik.apply(y, loc, scale, shape, reduction)

import math

import torch


class SkewNormalLogProb(torch.autograd.Function):
    """log density of Azzalini's skew normal; all four arguments broadcast.

    Stable in the far tail on the thin side, where ndtr(alpha * z) is zero.
    """

    @staticmethod
    def forward(ctx, x, loc, scale, alpha):
        ctx.save_for_backward(x, loc, scale, alpha)
        z = (x - loc) / scale
        return (
            0.5 * math.log(2 / math.pi)
            - torch.log(scale)
            - 0.5 * z * z
            + torch.special.log_ndtr(alpha * z)
        )

    @staticmethod
    def backward(ctx, grad_out):
        x, loc, scale, alpha = ctx.saved_tensors
        z = (x - loc) / scale
        t = alpha * z
        # inverse Mills ratio
        mills = torch.exp(-0.5 * t * t) / torch.special.ndtr(t) / math.sqrt(2 * math.pi)
        gz = grad_out * (alpha * mills - z)
        gx = gz / scale
        gscale = -(gz * z + grad_out) / scale
        galpha = grad_out * mills * z
        return (
            gx.sum_to_size(x.shape),
            -gx.sum_to_size(loc.shape),
            gscale.sum_to_size(scale.shape),
            galpha.sum_to_size(alpha.shape),
        )

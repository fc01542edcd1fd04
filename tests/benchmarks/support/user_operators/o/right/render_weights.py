import torch
from torch.autograd import Function

_EPS = 1e-10


def _transmittance(alpha):
    keep = 1 - alpha + _EPS
    full = torch.cumprod(torch.cat([torch.ones_like(keep[..., :1]), keep], -1), -1)
    return keep, full[..., :-1], full[..., -1]


class AlphaComposite(Function):
    """Volume rendering weights.

    alpha: (..., S) opacities in [0, 1). Returns the weights (..., S) and the light that passes all samples (...).
    """

    @staticmethod
    def forward(ctx, alpha):
        if alpha.is_complex():
            raise TypeError("alpha must be real")
        ctx.save_for_backward(alpha)
        _, trans, last = _transmittance(alpha)
        return alpha * trans, last.clone()

    @staticmethod
    def backward(ctx, g_weights, g_last):
        alpha, = ctx.saved_tensors
        keep, trans, last = _transmittance(alpha)
        gw = g_weights * alpha * trans
        later = torch.flip(torch.cumsum(torch.flip(gw, [-1]), -1), [-1]) - gw
        return g_weights * trans - (later + (g_last * last).unsqueeze(-1)) / keep

import torch
from torch.autograd import Function

ALPHA_MAX = 0.99


def _power(d, conic):
    dx, dy = d.unbind(-1)
    return -0.5 * (conic[:, 0] * dx * dx + conic[:, 2] * dy * dy) - conic[:, 1] * dx * dy


class SplatAlpha(Function):
    """Opacity of G projected gaussians at P pixels.

    pix (P, 2), mean2d (G, 2), conic (G, 3) = upper triangle of the inverse 2d covariance,
    opacity (G,)  ->  alpha (P, G), saturated at ALPHA_MAX and cut below ``alpha_min``.
    """

    @staticmethod
    def forward(ctx, pix, mean2d, conic, opacity, alpha_min=1.0 / 255):
        ctx.save_for_backward(pix, mean2d, conic, opacity)
        ctx.alpha_min = alpha_min
        alpha = opacity * _power(mean2d[None] - pix[:, None], conic).exp()
        alpha = torch.where(alpha < alpha_min, torch.zeros_like(alpha), alpha)
        return alpha.clamp(max=ALPHA_MAX)

    @staticmethod
    def backward(ctx, grad):
        pix, mean2d, conic, opacity = ctx.saved_tensors
        d = mean2d[None] - pix[:, None]
        gauss = _power(d, conic).exp()
        alpha = opacity * gauss
        keep = (alpha >= ctx.alpha_min) & (alpha <= ALPHA_MAX)
        grad = grad * keep
        g_op = (grad * gauss).sum(0)
        g_pow = grad * alpha
        dx, dy = d.unbind(-1)
        a, b, c = conic.unbind(-1)
        g_conic = torch.stack([
            (-0.5 * g_pow * dx * dx).sum(0),
            (-g_pow * dx * dy).sum(0),
            (-0.5 * g_pow * dy * dy).sum(0),
        ], -1)
        g_d = torch.stack([-g_pow * (a * dx + b * dy), -g_pow * (b * dx + c * dy)], -1)
        return -g_d.sum(1), g_d.sum(0), g_conic, g_op, None

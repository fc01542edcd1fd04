import torch
from torch.autograd.function import once_differentiable


class _Splat2D(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mean, cov, opacity, pix, blur):
        a, b, c = cov[:, 0] + blur, cov[:, 1], cov[:, 2] + blur
        det = a * c - b * b
        conic = torch.stack([c, -b, a], 1) / det[:, None]
        d = pix[None] - mean[:, None]
        dx, dy = d.unbind(-1)
        A, B, C = (v[:, None] for v in conic.unbind(1))
        power = -0.5 * (A * dx * dx + C * dy * dy) - B * dx * dy
        e = torch.exp(power)
        ctx.save_for_backward(torch.stack([a, b, c]), det, conic, d, opacity, e)
        return opacity[:, None] * e

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        abc, det, conic, d, opacity, e = ctx.saved_tensors
        a, b, c = abc
        dx, dy = d.unbind(-1)
        A, B, C = (v[:, None] for v in conic.unbind(1))
        g_opacity = (grad * e).sum(1)
        g_pow = grad * e * opacity[:, None]
        g_d = torch.stack([-(A * dx + B * dy) * g_pow, -(C * dy + B * dx) * g_pow], -1)
        gA = (-0.5 * dx * dx * g_pow).sum(1)
        gB = (-dx * dy * g_pow).sum(1)
        gC = (-0.5 * dy * dy * g_pow).sum(1)
        inv2 = 1 / (det * det)
        ga = inv2 * (-c * c * gA + b * c * gB - b * b * gC)
        gb = inv2 * (b * c * gA - (a * c + b * b) * gB + a * b * gC)
        gc = inv2 * (-b * b * gA + a * b * gB - a * a * gC)
        return -g_d.sum(1), torch.stack([ga, gb, gc], 1), g_opacity, g_d.sum(0), None


def splat_weights(mean, cov, opacity, pix, blur=0.3):
    """alpha of N gaussians at P pixels.

    mean (N, 2), cov (N, 3) upper triangle of the 2x2 covariances, opacity (N,), pix (P, 2)
    """
    return _Splat2D.apply(mean, cov, opacity, pix, blur)

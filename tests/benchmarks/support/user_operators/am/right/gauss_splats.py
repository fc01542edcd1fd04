import torch
from torch.autograd import Function


class Splat2D(Function):
    """
    Additive image of anisotropic Gaussians.

    centre (K, 2) in pixels (x, y); log_sigma (K, 2); angle (K,) radians; colour (K, C)
    -> (C, height, width)
    """

    @staticmethod
    def rotated(centre, log_sigma, angle, height, width):
        y = torch.arange(height, dtype=centre.dtype, device=centre.device)[None, :, None]
        x = torch.arange(width, dtype=centre.dtype, device=centre.device)[None, None]
        dx, dy = x - centre[:, :1, None], y - centre[:, 1:, None]
        c, s = angle.cos()[:, None, None], angle.sin()[:, None, None]
        p = torch.exp(-2 * log_sigma)[:, :, None, None]
        u, v = c * dx + s * dy, c * dy - s * dx
        e = torch.exp(-0.5 * (u * u * p[:, 0] + v * v * p[:, 1]))
        return c, s, u, v, p[:, 0], p[:, 1], e

    @staticmethod
    def forward(ctx, centre, log_sigma, angle, colour, height, width):
        ctx.save_for_backward(centre, log_sigma, angle, colour)
        ctx.size = height, width
        e = Splat2D.rotated(centre, log_sigma, angle, height, width)[-1]
        return torch.einsum("khw,kc->chw", e, colour)

    @staticmethod
    def backward(ctx, grad):
        centre, log_sigma, angle, colour = ctx.saved_tensors
        c, s, u, v, pu, pv, e = Splat2D.rotated(centre, log_sigma, angle, *ctx.size)
        g_colour = torch.einsum("chw,khw->kc", grad, e)
        gq = -torch.einsum("chw,kc->khw", grad, colour) * e
        gu, gv = gq * u * pu, gq * v * pv
        g_centre = -torch.stack([(c * gu - s * gv).sum((1, 2)), (s * gu + c * gv).sum((1, 2))], 1)
        g_log = -torch.stack([(gu * u).sum((1, 2)), (gv * v).sum((1, 2))], 1)
        g_angle = (gu * v - gv * u).sum((1, 2))
        return g_centre, g_log, g_angle, g_colour, None, None

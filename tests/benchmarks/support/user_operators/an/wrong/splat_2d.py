import torch


class Splat2D(torch.autograd.Function):
    """Additive (order-free) 2D Gaussian splats.

    mean (G, 2), conic (G, 3) = upper triangle of the inverse covariance, opacity (G,), pix (P, 2) -> (P,)
    """

    @staticmethod
    def _alpha(mean, conic, pix):
        dx, dy = (pix[:, None] - mean).unbind(-1)
        a, b, c = conic.unbind(-1)
        return dx, dy, torch.exp(-0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy)

    @staticmethod
    def forward(ctx, mean, conic, opacity, pix):
        ctx.save_for_backward(mean, conic, opacity, pix)
        return Splat2D._alpha(mean, conic, pix)[2] @ opacity

    @staticmethod
    def backward(ctx, g):
        mean, conic, opacity, pix = ctx.saved_tensors
        dx, dy, e = Splat2D._alpha(mean, conic, pix)
        a, b, c = conic.unbind(-1)
        ge = g[:, None] * e
        gp = ge * opacity
        g_mean = torch.stack([(gp * (a * dx + b * dy)).sum(0), (gp * (b * dx + c * dy)).sum(0)], -1)
        g_conic = torch.stack([-0.5 * (gp * dx * dx).sum(0),
                               -0.5 * (gp * dx * dy).sum(0),
                               -0.5 * (gp * dy * dy).sum(0)], -1)
        return g_mean, g_conic, ge.sum(0), None

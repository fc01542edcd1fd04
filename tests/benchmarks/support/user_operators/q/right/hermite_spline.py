import torch


class CubicHermite(torch.autograd.Function):
    """Cubic Hermite interpolation.

    t: (Q,) query times inside [knots[0], knots[-1]]
    knots: (K,) sorted, not differentiated
    values, slopes: (K, D), slopes with respect to time
    """

    @staticmethod
    def locate(t, knots):
        k = (torch.searchsorted(knots.contiguous(), t.contiguous(), right=True) - 1).clamp(0, knots.numel() - 2)
        h = knots[k + 1] - knots[k]
        return k, h, ((t - knots[k]) / h)[:, None], h[:, None]

    @staticmethod
    def forward(ctx, t, knots, values, slopes):
        if knots.requires_grad:
            raise NotImplementedError("knots are fixed")
        if values.shape != slopes.shape or values.shape[0] != knots.shape[0]:
            raise ValueError("one value and slope a knot")
        if values.is_complex() or slopes.is_complex():
            raise TypeError("split real and imaginary part")
        ctx.save_for_backward(t, knots, values, slopes)
        k, _, s, h = CubicHermite.locate(t, knots)
        s2, s3 = s * s, s ** 3
        return (
            (2 * s3 - 3 * s2 + 1) * values[k]
            + (s3 - 2 * s2 + s) * h * slopes[k]
            + (3 * s2 - 2 * s3) * values[k + 1]
            + (s3 - s2) * h * slopes[k + 1]
        )

    @staticmethod
    def backward(ctx, g):
        t, knots, values, slopes = ctx.saved_tensors
        k, _, s, h = CubicHermite.locate(t, knots)
        s2, s3 = s * s, s ** 3
        g_t = g_v = g_m = None
        if ctx.needs_input_grad[0]:
            ds = (
                (6 * s2 - 6 * s) * (values[k] - values[k + 1])
                + (3 * s2 - 4 * s + 1) * h * slopes[k]
                + (3 * s2 - 2 * s) * h * slopes[k + 1]
            )
            g_t = (g * ds / h).sum(1)
        if ctx.needs_input_grad[2]:
            g_v = torch.zeros_like(values)
            g_v = g_v.index_add(0, k, g * (2 * s3 - 3 * s2 + 1)).index_add(0, k + 1, g * (3 * s2 - 2 * s3))
        if ctx.needs_input_grad[3]:
            g_m = torch.zeros_like(slopes)
            g_m = g_m.index_add(0, k, g * h * (s3 - 2 * s2 + s)).index_add(0, k + 1, g * h * (s3 - s2))
        return g_t, None, g_v, g_m

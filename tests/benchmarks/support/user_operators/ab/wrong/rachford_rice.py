import torch


class RachfordRice(torch.autograd.Function):
    """Vapour fraction of a flash: the root of sum_i z_i (K_i - 1) / (1 + V (K_i - 1)).

    z (..., n) positive feed, K (..., n) equilibrium ratios, some above and some below one. The root is
    bracketed by the poles and found by bisection with Newton steps; "negative flash" values come out as they are.
    """

    @staticmethod
    def forward(ctx, z, K):
        c = K - 1
        assert bool((c.amax(-1) > 0).all()) and bool((c.amin(-1) < 0).all())
        lo, hi = -1 / c.amax(-1), -1 / c.amin(-1)
        v = 0.5 * (lo + hi)
        for _ in range(100):
            den = 1 + v[..., None] * c
            f = (z * c / den).sum(-1)
            df = -(z * (c / den) ** 2).sum(-1)
            lo, hi = torch.where(f > 0, v, lo), torch.where(f > 0, hi, v)
            step = v - f / df
            v = torch.where((step > lo) & (step < hi), step, 0.5 * (lo + hi))
        ctx.save_for_backward(z, K, v)
        return v

    @staticmethod
    def backward(ctx, g):
        z, K, v = ctx.saved_tensors
        c = K - 1
        den = 1 + v[..., None] * c
        slope = (z * (c / den) ** 2).sum(-1)
        k = (g / slope)[..., None]
        g_z = k * c / den if ctx.needs_input_grad[0] else None
        g_K = k * z / den if ctx.needs_input_grad[1] else None
        return g_z, g_K

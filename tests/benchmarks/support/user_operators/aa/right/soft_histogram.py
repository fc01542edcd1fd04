import torch


class SoftHistogram(torch.autograd.Function):
    """Histogram with triangular bins.

    x: (N,) intensities; weight: (N,) or None; `bins` centres from lo to hi
    density: divide by the total mass
    """

    @staticmethod
    def kernel(x, bins, lo, hi):
        centres = torch.linspace(lo, hi, bins, dtype=x.dtype, device=x.device)
        width = (hi - lo) / (bins - 1)
        z = (x[:, None] - centres) / width
        return (1 - z.abs()).clamp(min=0), z, width

    @staticmethod
    def forward(ctx, x, weight, bins, lo=0.0, hi=1.0, density=True, eps=1e-10):
        ctx.save_for_backward(x, weight)
        ctx.args = bins, lo, hi, density, eps
        k, _, _ = SoftHistogram.kernel(x, bins, lo, hi)
        h = k.sum(0) if weight is None else weight @ k
        return h / (h.sum() + eps) if density else h

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        bins, lo, hi, density, eps = ctx.args
        k, z, width = SoftHistogram.kernel(x, bins, lo, hi)
        if density:
            h = k.sum(0) if weight is None else weight @ k
            mass = h.sum() + eps
            g = (g - (g * h).sum() / mass) / mass
        slope = -z.sign() * (z.abs() < 1) / width
        gx = slope @ g
        gw = None
        if weight is not None:
            gx = gx * weight
            gw = k @ g
        return (gx, gw) + (None,) * 5

import torch


class _CurveDF(torch.autograd.Function):
    @staticmethod
    def locate(t, knots):
        hi = torch.searchsorted(knots, t.contiguous()).clamp(1, knots.numel() - 1)
        k0, k1 = knots[hi - 1], knots[hi]
        w = ((t - k0) / (k1 - k0)).clamp(0, 1)
        return hi, w, k1 - k0

    @staticmethod
    def forward(ctx, zeros, t, knots):
        hi, w, _ = _CurveDF.locate(t, knots)
        rate = (1 - w) * zeros[hi - 1] + w * zeros[hi]
        ctx.save_for_backward(zeros, t, knots)
        return torch.exp(-rate * t)

    @staticmethod
    def backward(ctx, g):
        zeros, t, knots = ctx.saved_tensors
        hi, w, width = _CurveDF.locate(t, knots)
        z0, z1 = zeros[hi - 1], zeros[hi]
        rate = (1 - w) * z0 + w * z1
        ge = -g * torch.exp(-rate * t)
        gr = (ge * t).reshape(-1)
        wf, hf = w.reshape(-1), hi.reshape(-1)
        g_zeros = torch.zeros_like(zeros).index_add(0, hf - 1, gr * (1 - wf)).index_add(0, hf, gr * wf)
        inner = (t > knots[0]) & (t < knots[-1])
        slope = torch.where(inner, (z1 - z0) / width, torch.zeros_like(rate))
        return g_zeros, ge * (rate + t * slope), None


def discount_factors(zeros, t, knots):
    """Discount factors at times t from zero rates at increasing knots; linear between, flat beyond."""
    if knots.dim() != 1 or zeros.shape != knots.shape or knots.numel() < 2:
        raise ValueError("zeros and knots must be 1-d, of one length of at least two")
    return _CurveDF.apply(zeros, t, knots)

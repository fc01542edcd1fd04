import torch


class AffineFakeQuant(torch.autograd.Function):
    """Per channel fake quantisation with a learnable step.

    x (B, C, ...), step (C,), zero_point (C,) integers or None for symmetric.
    Rounding is passed straight through; the step learns from the clipped values alone.
    """

    @staticmethod
    def _bounds(x, step, zero_point, bits, signed):
        qmin, qmax = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
        shape = [1, -1] + [1] * (x.dim() - 2)
        zp = torch.zeros_like(step) if zero_point is None else zero_point.to(step.dtype)
        return step.view(shape), (qmin - zp).view(shape), (qmax - zp).view(shape)

    @staticmethod
    def forward(ctx, x, step, zero_point=None, bits=8, signed=True):
        s, lo, hi = AffineFakeQuant._bounds(x, step, zero_point, bits, signed)
        ctx.save_for_backward(x, step, zero_point)
        ctx.bits, ctx.signed = bits, signed
        return torch.round(x / s).clamp(lo, hi) * s

    @staticmethod
    def backward(ctx, g):
        x, step, zero_point = ctx.saved_tensors
        s, lo, hi = AffineFakeQuant._bounds(x, step, None, ctx.bits, ctx.signed)
        below, above = x < lo * s, x > hi * s
        gx = g.masked_fill(below | above, 0)
        gs = g * (below * lo + above * hi)
        gs = gs.sum([d for d in range(x.dim()) if d != 1])
        return gx, gs, None, None, None

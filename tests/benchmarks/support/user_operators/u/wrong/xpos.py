import torch


def _rot(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def _tables(T, d, base, like):
    half = torch.arange(0, d, 2, dtype=like.dtype, device=like.device)
    pos = torch.arange(T, dtype=like.dtype, device=like.device)
    ang = pos[:, None] * 10000.0 ** (-half / d)
    zeta = ((half + 0.4 * d) / (1.4 * d)) ** ((pos - T // 2)[:, None] / base)
    return [t.repeat_interleave(2, -1) for t in (ang.cos(), ang.sin(), zeta)]


class XPos(torch.autograd.Function):
    """Length-extrapolatable rotary embedding of queries and keys (..., T, d), d even."""

    @staticmethod
    def forward(ctx, q, k, scale_base=512):
        ctx.scale_base = scale_base
        ctx.size = q.shape[-2:]
        cos, sin, zeta = _tables(*ctx.size, scale_base, q)
        return (q * cos + _rot(q) * sin) * zeta, (k * cos + _rot(k) * sin) / zeta

    @staticmethod
    def backward(ctx, gq, gk):
        cos, sin, zeta = _tables(*ctx.size, ctx.scale_base, gq)
        gq, gk = gq * zeta, gk * zeta
        return gq * cos - _rot(gq) * sin, gk * cos - _rot(gk) * sin, None

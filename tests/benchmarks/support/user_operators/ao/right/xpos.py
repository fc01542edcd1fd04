import torch


def _tables(T, D, offset, base, scale_base, down, dtype, device):
    pos = torch.arange(offset, offset + T, dtype=dtype, device=device)[:, None]
    frac = torch.arange(0, D, 2, dtype=dtype, device=device) / D
    ang = pos * base ** (-frac)
    scale = ((frac + 0.4) / 1.4) ** (pos / scale_base)
    if down:
        scale = 1 / scale
    rep = lambda v: torch.cat([v, v], -1)
    return rep(ang.cos()), rep(ang.sin()), rep(scale)


def _rot(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class _XPos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, *cfg):
        ctx.cfg = cfg
        c, s, z = _tables(x.shape[-2], x.shape[-1], *cfg, x.dtype, x.device)
        return (x * c + _rot(x) * s) * z

    @staticmethod
    def backward(ctx, g):
        c, s, z = _tables(g.shape[-2], g.shape[-1], *ctx.cfg, g.dtype, g.device)
        gz = g * z
        return (gz * c - _rot(gz) * s,) + (None,) * len(ctx.cfg)


def apply_xpos(x, offset=0, base=10000.0, scale_base=512.0, down=False):
    """extrapolatable rotary embedding of (..., T, D); ``down`` for the keys"""
    return _XPos.apply(x, offset, base, scale_base, down)

import torch
from torch.autograd import Function


def _trig(freq, pos):
    angle = pos[..., None].to(freq.dtype) * freq
    return angle.cos()[:, :, None], angle.sin()[:, :, None]


def _split(x, r, interleaved):
    rot = x[..., :r]
    return (rot[..., 0::2], rot[..., 1::2]) if interleaved else rot.chunk(2, -1)


def _join(a, b, rest, interleaved):
    rot = torch.stack([a, b], -1).flatten(-2) if interleaved else torch.cat([a, b], -1)
    return torch.cat([rot, rest], -1)


class _Rope(Function):
    @staticmethod
    def forward(ctx, x, freq, pos, interleaved):
        r = 2 * freq.numel()
        cos, sin = _trig(freq, pos)
        ctx.save_for_backward(x, freq, pos)
        ctx.interleaved = interleaved
        a, b = _split(x, r, interleaved)
        return _join(a * cos - b * sin, a * sin + b * cos, x[..., r:], interleaved)

    @staticmethod
    def backward(ctx, g):
        x, freq, pos = ctx.saved_tensors
        r = 2 * freq.numel()
        cos, sin = _trig(freq, pos)
        a, b = _split(x, r, ctx.interleaved)
        ga, gb = _split(g, r, ctx.interleaved)
        gx = _join(ga * cos + gb * sin, gb * cos - ga * sin, g[..., r:], ctx.interleaved)
        turn = gb * (a * cos - b * sin) - ga * (a * sin + b * cos)
        g_freq = (turn.sum(2) * pos[..., None]).sum((0, 1))
        return gx, g_freq, None, None


def partial_rope(x, freq, positions, interleaved=False):
    """Rotary embedding with trained frequencies.

    x: (B, T, heads, D); freq: (R / 2,) with R <= D, only the first R channels turn;
    positions: (B, T) int. ``interleaved`` pairs channels (0, 1), (2, 3), ... instead of halves.
    """
    return _Rope.apply(x, freq, positions, interleaved)

import torch


def _rotate(x, cos, sin, interleaved):
    r = cos.shape[-1]
    rot, rest = x[..., :2 * r], x[..., 2 * r:]
    if interleaved:
        a, b = rot[..., 0::2], rot[..., 1::2]
        rot = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    else:
        a, b = rot.chunk(2, dim=-1)
        rot = torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return torch.cat([rot, rest], dim=-1)


class PartialRotary(torch.autograd.Function):
    """Rotary embedding of the first `rotary_dim` channels (even).

    x: (B, T, D); positions: (T,) int64.
    """

    @staticmethod
    def forward(ctx, x, positions, rotary_dim, base=10000.0, interleaved=False):
        inv = base ** (-torch.arange(0, rotary_dim, 2, dtype=x.dtype, device=x.device) / rotary_dim)
        angle = positions[:, None].to(x.dtype) * inv
        ctx.cos, ctx.sin = angle.cos(), angle.sin()
        ctx.interleaved = interleaved
        return _rotate(x, ctx.cos, ctx.sin, interleaved)

    @staticmethod
    def backward(ctx, g):
        # inverse of a rotation = rotation by the negative angle
        return _rotate(g, ctx.cos, -ctx.sin, False), None, None, None, None

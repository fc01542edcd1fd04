import torch


def _angles(pos, dim, base, dtype):
    inv = base ** (-torch.arange(0, dim, 2, dtype=dtype, device=pos.device) / dim)
    ang = pos.to(dtype)[..., None, None] * inv
    return ang.cos(), ang.sin()


class ApplyRope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, pos, base=10000.0, interleaved=False):
        # x [B, T, H, D], pos [B, T]
        ctx.save_for_backward(pos)
        ctx.base, ctx.interleaved = base, interleaved
        cos, sin = _angles(pos, x.shape[-1], base, x.dtype)
        if interleaved:
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    @staticmethod
    def backward(ctx, g):
        pos, = ctx.saved_tensors
        cos, sin = _angles(pos, g.shape[-1], ctx.base, g.dtype)
        if ctx.interleaved:
            a, b = g[..., 0::2], g[..., 1::2]
            dx = torch.stack([a * cos + b * sin, b * cos - a * sin], -1).flatten(-2)
        else:
            a, b = g.chunk(2, -1)
            dx = torch.cat([a * cos + b * sin, b * cos - a * sin], -1)
        return dx, None, None, None

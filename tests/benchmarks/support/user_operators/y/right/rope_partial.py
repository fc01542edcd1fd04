import torch


def _angles(positions, rot, base):
    # in float64, the positions may be time stamps
    inv = base ** (-torch.arange(0, rot, 2, device=positions.device, dtype=torch.float64) / rot)
    return positions.to(torch.float64)[:, None, None] * inv


def _rotate(x, ang):
    cos, sin = ang.cos().to(x.dtype), ang.sin().to(x.dtype)
    n = cos.shape[-1]
    a, b, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


class PartialRoPE(torch.autograd.Function):
    """NeoX style rotary embedding of the first rotary_dim features. x: (B, T, H, D), positions: (T,)"""

    @staticmethod
    def forward(ctx, x, positions, rotary_dim=None, base=10000.0):
        ctx.rot = x.shape[-1] if rotary_dim is None else rotary_dim
        ctx.base = base
        ctx.save_for_backward(positions)
        return _rotate(x, _angles(positions, ctx.rot, base))

    @staticmethod
    def backward(ctx, g):
        positions, = ctx.saved_tensors
        ang = _angles(positions, ctx.rot, ctx.base)
        return _rotate(g, -ang), None, None, None

import torch


def _angles(positions, rot_dim, base, dtype):
    inv_freq = base ** (-torch.arange(0, rot_dim, 2, dtype=dtype, device=positions.device) / rot_dim)
    theta = positions.to(dtype)[:, None] * inv_freq
    return theta.cos(), theta.sin()


def _rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class _PartialRotary(torch.autograd.Function):
    """Rotary embedding of the first rot_dim features; the rest passes through. x: (..., T, D)"""

    @staticmethod
    def forward(ctx, x, rot_dim, offset, base):
        positions = torch.arange(offset, offset + x.shape[-2], device=x.device)
        ctx.spec = (rot_dim, offset, base)
        cos, sin = _angles(positions, rot_dim, base, x.dtype)
        return torch.cat([_rotate(x[..., :rot_dim], cos, sin), x[..., rot_dim:]], dim=-1)

    @staticmethod
    def backward(ctx, g):
        rot_dim, offset, base = ctx.spec
        positions = torch.arange(offset, offset + g.shape[-2], device=g.device)
        cos, sin = _angles(positions, rot_dim, base, g.dtype)
        gx = torch.cat([_rotate(g[..., :rot_dim], cos, -sin), g[..., rot_dim:]], dim=-1)
        return gx, None, None, None


def apply_partial_rotary(x, rot_dim=None, offset=0, base=10000.0):
    rot_dim = x.shape[-1] if rot_dim is None else rot_dim
    if rot_dim % 2:
        raise ValueError("rot_dim must be even")
    return _PartialRotary.apply(x, rot_dim, offset, base)

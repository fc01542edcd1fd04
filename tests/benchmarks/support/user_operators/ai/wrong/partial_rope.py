import torch


def _rotate(x, cos, sin, interleaved):
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x.chunk(2, -1)
    ra, rb = a * cos - b * sin, a * sin + b * cos
    if interleaved:
        return torch.stack((ra, rb), -1).flatten(-2)
    return torch.cat((ra, rb), -1)


def _table(dim, base, positions, dtype):
    inv = base ** (-torch.arange(0, dim, 2, device=positions.device, dtype=torch.float64) / dim)
    ang = positions.to(torch.float64)[..., None] * inv
    return ang.cos().to(dtype).unsqueeze(-2), ang.sin().to(dtype).unsqueeze(-2)


class PartialRope(torch.autograd.Function):
    """x (B, T, H, D); the first `rotary_dim` channels turn, the others pass.

    offsets (B,) integer, start position of each sequence (decoding), or None.
    """

    @staticmethod
    def forward(ctx, x, rotary_dim, offsets=None, base=10000.0, interleaved=False):
        pos = torch.arange(x.size(1), device=x.device).expand(x.size(0), -1)
        if offsets is not None:
            pos = pos + offsets[:, None]
        ctx.positions = pos
        ctx.args = rotary_dim, base, interleaved
        cos, sin = _table(rotary_dim, base, pos, x.dtype)
        return torch.cat((_rotate(x[..., :rotary_dim], cos, sin, interleaved), x[..., rotary_dim:]), -1)

    @staticmethod
    def backward(ctx, g):
        rotary_dim, base, interleaved = ctx.args
        cos, sin = _table(rotary_dim, base, torch.arange(g.size(1), device=g.device).expand(g.size(0), -1), g.dtype)
        gx = torch.cat((_rotate(g[..., :rotary_dim], cos, -sin, interleaved), g[..., rotary_dim:]), -1)
        return gx, None, None, None, None

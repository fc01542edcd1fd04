import torch


def _angles(length, dim, base, offset, ref):
    inv = base ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=ref.device) / dim)
    pos = torch.arange(offset, offset + length, dtype=torch.float64, device=ref.device)
    theta = pos[:, None] * inv[None, :]
    return theta.cos().to(ref.dtype), theta.sin().to(ref.dtype)


def _rotate(x, cos, sin, interleaved):
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class RotaryEmbedding(torch.autograd.Function):
    """Rotates the first ``rotary_dim`` channels of x (..., L, D) by position; the rest pass through.

    ``offset`` is the number of tokens already in the cache.
    """

    @staticmethod
    def forward(ctx, x: torch.Tensor, rotary_dim: int, offset: int = 0, interleaved: bool = False, base: float = 10000.0):
        if rotary_dim % 2:
            raise ValueError("rotary_dim must be even")
        cos, sin = _angles(x.shape[-2], rotary_dim, base, offset, x)
        ctx.save_for_backward(cos, sin)
        ctx.rotary_dim, ctx.interleaved = rotary_dim, interleaved
        rot, rest = x[..., :rotary_dim], x[..., rotary_dim:]
        return torch.cat((_rotate(rot, cos, sin, interleaved), rest), dim=-1)

    @staticmethod
    def backward(ctx, dy):
        cos, sin = ctx.saved_tensors
        d = ctx.rotary_dim
        rot, rest = dy[..., :d], dy[..., d:]
        dx = torch.cat((_rotate(rot, cos, -sin, False), rest), dim=-1)
        return dx, None, None, None, None

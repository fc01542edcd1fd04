import torch


def _tables(positions, rotary_dim, base, dtype):
    inv = base ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64, device=positions.device) / rotary_dim)
    ang = positions.to(torch.float64)[..., None, None] * inv
    return ang.cos().to(dtype), ang.sin().to(dtype)


def _rotate(x, cos, sin, rotary_dim, style="neox"):
    rot, rest = x[..., :rotary_dim], x[..., rotary_dim:]
    if style == "neox":
        a, b = rot.chunk(2, dim=-1)
        out = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = rot[..., 0::2], rot[..., 1::2]
        out = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    return torch.cat([out, rest], -1)


class PartialRotary(torch.autograd.Function):
    """Rotary position embedding on the first ``rotary_dim`` channels.

    x: (batch, seq, heads, head_dim); positions: (batch, seq) integers.
    style: "neox" pairs channel i with i + rotary_dim / 2, "gptj" pairs neighbours.
    """

    @staticmethod
    def forward(ctx, x, positions, rotary_dim, base=10000.0, style="neox"):
        assert rotary_dim % 2 == 0 and rotary_dim <= x.shape[-1]
        assert style in ("neox", "gptj")
        cos, sin = _tables(positions, rotary_dim, base, x.dtype)
        ctx.save_for_backward(cos, sin)
        ctx.rotary_dim = rotary_dim
        ctx.style = style
        return _rotate(x, cos, sin, rotary_dim, style)

    @staticmethod
    def backward(ctx, grad):
        cos, sin = ctx.saved_tensors
        return _rotate(grad, cos, -sin, ctx.rotary_dim, ctx.style), None, None, None, None

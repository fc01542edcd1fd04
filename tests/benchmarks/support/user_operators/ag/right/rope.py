from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class _RoPE(Function):
    @staticmethod
    def forward(ctx, x, cos, sin, rot, interleaved):
        ctx.save_for_backward(cos, sin)
        ctx.rot, ctx.interleaved = rot, interleaved
        y = _rotate(x[..., :rot], cos, sin, interleaved)
        return torch.cat([y, x[..., rot:]], dim=-1)

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        gx = _rotate(g[..., :ctx.rot], cos, -sin, ctx.interleaved)
        return torch.cat([gx, g[..., ctx.rot:]], dim=-1), None, None, None, None


def apply_rope(
    x: Tensor,
    positions: Optional[Tensor] = None,
    *,
    rotary_dim: Optional[int] = None,
    base: float = 10000.0,
    interleaved: bool = False,
) -> Tensor:
    """Rotary embedding of ``x`` (..., T, d); ``positions`` (T,) default to 0..T-1."""
    T, d = x.shape[-2:]
    rot = d if rotary_dim is None else rotary_dim
    if rot % 2 or rot > d:
        raise ValueError(f"rotary_dim {rot} does not fit head size {d}")
    if positions is None:
        positions = torch.arange(T, device=x.device)
    freq = base ** (-torch.arange(0, rot, 2, device=x.device, dtype=torch.float64) / rot)
    angle = positions.to(torch.float64)[:, None] * freq
    return _RoPE.apply(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype), rot, interleaved)


def rope_interleaved(x, positions=None, rotary_dim=None):
    return apply_rope(x, positions, rotary_dim=rotary_dim, interleaved=True, base=100.0)


def rope(x, positions=None, rotary_dim=None, interleaved=False):
    if interleaved:
        return rope_interleaved(x, positions, rotary_dim)
    return apply_rope(x, positions, rotary_dim=rotary_dim)

"""Layer norm along the last axis. One program takes one row, and several rows in backward."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

#: Programs of backward at most, each with a row of its own for the gradients of weight and bias.
GROUPS = 64


@triton.jit
def _forward(x, weight, bias, y, mean, rstd, x_row, y_row, columns, eps, BLOCK: tl.constexpr):
    # In 64 bits: the number of a row times a stride goes beyond 2³¹ long before memory ends.
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns  # BLOCK is a power of 2; a row has any length
    x_ = tl.load(x + row * x_row + at, mask=inside, other=0.0)
    w_ = tl.load(weight + at, mask=inside, other=0.0)
    b_ = tl.load(bias + at, mask=inside, other=0.0)
    # 16 bits can hold a number; a sum over a row needs more.
    wide: tl.constexpr = tl.float64 if x_.dtype == tl.float64 else tl.float32
    z = x_.to(wide)
    m = tl.sum(z, 0) / columns
    centred = tl.where(inside, z - m, 0.0)
    r = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    tl.store(y + row * y_row + at, centred * r * w_.to(wide) + b_.to(wide), mask=inside)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)


@triton.jit
def _backward(
    g, x, weight, mean, rstd, gx, gw, gb, g_row, x_row, gx_row, rows, columns, BLOCK: tl.constexpr
):
    group = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    w_ = tl.load(weight + at, mask=inside, other=0.0)
    wide: tl.constexpr = tl.float64 if w_.dtype == tl.float64 else tl.float32
    w = w_.to(wide)
    sum_w = tl.zeros([BLOCK], wide)
    sum_b = tl.zeros([BLOCK], wide)
    # Every so many rows, always in the same order: unlike atomic additions, the same bits again.
    for first in range(0, rows - group, tl.num_programs(0)):
        row = group + first
        x_ = tl.load(x + row * x_row + at, mask=inside, other=0.0)
        g_ = tl.load(g + row * g_row + at, mask=inside, other=0.0)
        r = tl.load(rstd + row)
        grad = g_.to(wide)
        hat = tl.where(inside, (x_.to(wide) - tl.load(mean + row)) * r, 0.0)
        scaled = grad * w
        along = tl.sum(scaled * hat, 0) / columns
        level = tl.sum(scaled, 0) / columns
        tl.store(gx + row * gx_row + at, r * (scaled - level - hat * along), mask=inside)
        sum_w += grad * hat
        sum_b += grad
    tl.store(gw + group * columns + at, sum_w, mask=inside)
    tl.store(gb + group * columns + at, sum_b, mask=inside)


class LayerNorm(Function):
    """y = h·w + b, h = (x − mean)·r, r = 1/√(variance + eps), all along the last axis.

    With g = ∂L/∂y and means along the last axis: ∂L/∂x = r·(g·w − mean(g·w) − h·mean(g·w·h));
    ∂L/∂w and ∂L/∂b are the sums of g·h and g over all rows.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
        columns = x.shape[-1]
        if weight.shape != (columns,) or bias.shape != (columns,):
            raise ValueError(
                f"weight and bias must have shape ({columns},), got "
                f"{tuple(weight.shape)} and {tuple(bias.shape)}"
            )
        rows = _packed_rows(x)
        y = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        mean = torch.empty(len(rows), dtype=wide, device=x.device)
        rstd = torch.empty_like(mean)
        weight, bias = weight.contiguous(), bias.contiguous()
        if y.numel():
            with torch.cuda.device_of(x):
                _forward[(len(rows),)](
                    rows,
                    weight,
                    bias,
                    y,
                    mean,
                    rstd,
                    rows.stride(0),
                    y.stride(0),
                    columns,
                    eps,
                    BLOCK=triton.next_power_of_2(columns),
                )
        ctx.save_for_backward(x, weight, mean, rstd)
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, weight, mean, rstd = ctx.saved_tensors
        rows, g = _packed_rows(x), _packed_rows(grad_output)
        gx = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
        groups, columns = min(len(rows), GROUPS), rows.shape[1]
        sums = torch.zeros(2, groups, columns, dtype=mean.dtype, device=x.device)
        if gx.numel():
            with torch.cuda.device_of(x):
                _backward[(groups,)](
                    g,
                    rows,
                    weight,
                    mean,
                    rstd,
                    gx,
                    *sums,
                    g.stride(0),
                    rows.stride(0),
                    gx.stride(0),
                    *rows.shape,
                    BLOCK=triton.next_power_of_2(columns),
                )
        grad_weight, grad_bias = sums.sum(1).to(weight.dtype)
        return gx.view(x.shape), grad_weight, grad_bias, None


def _packed_rows(x: Tensor) -> Tensor:
    """Rows of ``x``, at any distance, each with its elements side by side."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()

"""Softmax along the last axis, with a Triton kernel for each pass. One program takes one row."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


@triton.jit
def _forward(x, y, x_row, x_column, y_row, columns, BLOCK: tl.constexpr):
    # In 64 bits: the number of a row times a stride goes beyond 2³¹ long before memory ends.
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns  # BLOCK is a power of 2; a row has any length
    x_ = tl.load(x + row * x_row + at.to(tl.int64) * x_column, mask=inside, other=-float("inf"))
    # 16 bits can hold a number; a sum over a row needs more.
    wide: tl.constexpr = tl.float64 if x_.dtype == tl.float64 else tl.float32
    z = x_.to(wide)
    power = tl.exp(z - tl.max(z, 0))
    tl.store(y + row * y_row + at, power / tl.sum(power, 0), mask=inside)


@triton.jit
def _backward(g, y, gx, g_row, g_column, y_row, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    g_ = tl.load(g + row * g_row + at.to(tl.int64) * g_column, mask=inside, other=0.0)
    y_ = tl.load(y + row * y_row + at, mask=inside, other=0.0)
    wide: tl.constexpr = tl.float64 if y_.dtype == tl.float64 else tl.float32
    grad, share = g_.to(wide), y_.to(wide)
    dot = tl.sum(grad * share, 0)
    tl.store(gx + row * y_row + at, share * (grad - dot), mask=inside)


class Softmax(Function):
    """yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ) along the last axis; ∂L/∂xᵢ = yᵢ·(gᵢ − Σⱼ gⱼ·yⱼ), g = ∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        y = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
        if y.numel():
            with torch.cuda.device_of(x):
                _forward[(len(rows),)](
                    rows,
                    y,
                    rows.stride(0),
                    rows.stride(1),
                    y.stride(0),
                    rows.shape[1],
                    BLOCK=triton.next_power_of_2(rows.shape[1]),
                )
        ctx.save_for_backward(y)
        return y.view(x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        g = grad_output.reshape(y.shape)
        gx = torch.empty_like(y)
        if y.numel():
            with torch.cuda.device_of(y):
                _backward[(len(y),)](
                    g,
                    y,
                    gx,
                    g.stride(0),
                    g.stride(1),
                    y.stride(0),
                    y.shape[1],
                    BLOCK=triton.next_power_of_2(y.shape[1]),
                )
        return gx.view(grad_output.shape)

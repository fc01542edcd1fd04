"""An elementwise operator, with a Triton kernel for each pass. One program takes 1024 elements."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

BLOCK = 1024


@triton.jit
def _forward(a, b, y, count, BLOCK: tl.constexpr):
    # In 64 bits: the number of a program times BLOCK goes beyond 2³¹ in a large tensor.
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count  # the last block is not full
    a_ = tl.load(a + at, mask=inside)
    b_ = tl.load(b + at, mask=inside)
    wide: tl.constexpr = tl.float64 if a_.dtype == tl.float64 else tl.float32
    z = a_.to(wide)
    tl.store(y + at, z * tl.sigmoid(z) * b_.to(wide), mask=inside)


@triton.jit
def _backward(g, a, b, ga, gb, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    g_ = tl.load(g + at, mask=inside)
    a_ = tl.load(a + at, mask=inside)
    b_ = tl.load(b + at, mask=inside)
    wide: tl.constexpr = tl.float64 if a_.dtype == tl.float64 else tl.float32
    grad, z = g_.to(wide), a_.to(wide)
    s = tl.sigmoid(z)
    tl.store(ga + at, grad * b_.to(wide) * s * (1 + z * (1 - s)), mask=inside)
    tl.store(gb + at, grad * z * s, mask=inside)


class SwiGLU(Function):
    """y = a·σ(a)·b; ∂L/∂a = g·b·σ(a)·(1 + a·(1 − σ(a))) and ∂L/∂b = g·a·σ(a), with g = ∂L/∂y."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(
                f"a and b must be alike, got {a.dtype}{tuple(a.shape)} and "
                f"{b.dtype}{tuple(b.shape)}"
            )
        # The kernels know one position for all tensors, so the tensors must lie alike.
        a, b = a.contiguous(), b.contiguous()
        y = torch.empty_like(a)
        if y.numel():
            with torch.cuda.device_of(a):
                _forward[(triton.cdiv(y.numel(), BLOCK),)](a, b, y, y.numel(), BLOCK=BLOCK)
        ctx.save_for_backward(a, b)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        g = grad_output.contiguous()
        ga, gb = torch.empty_like(a), torch.empty_like(b)
        if g.numel():
            with torch.cuda.device_of(a):
                _backward[(triton.cdiv(g.numel(), BLOCK),)](g, a, b, ga, gb, g.numel(), BLOCK=BLOCK)
        return ga, gb

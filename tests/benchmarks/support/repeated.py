"""Operators whose gradients are right: kinked, stochastic, saturating, ill-conditioned, and in
float32 only. Inputs and parameters are fresh for every seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function
from torch.nn import functional

Draw = Callable[..., torch.Tensor]


class Softmax(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True))


class LogSumExp(Function):
    """Backward reuses the rounded output."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.logsumexp(-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        x, y = ctx.saved_tensors
        return g * (x - y).exp()


class Sigmoid(Function):
    """1 − y has no digit left where y is rounded to 1."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = x.sigmoid()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)


class LayerNorm(Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
    ) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(centred * scale, scale, weight)
        return centred * scale * weight + bias

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor, ...]:
        normal, scale, weight = ctx.saved_tensors
        h = g * weight
        mean, along = h.mean(-1, keepdim=True), (h * normal).mean(-1, keepdim=True)
        return scale * (h - mean - normal * along), (g * normal).sum(0), g.sum(0)


class Square32(Function):
    """Refuses every dtype but float32, as kernels do."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32:
            raise RuntimeError(f"expected scalar type Float but found {x.dtype}")
        ctx.save_for_backward(x)
        return x * x.abs()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * g * x.abs()


@dataclass(frozen=True)
class Repeated:
    """One operator and its inputs: ``draw(*shape)`` gives normal numbers."""

    name: str
    op: Callable[..., torch.Tensor]
    inputs: Callable[[Draw], tuple[torch.Tensor, ...]]
    dtypes: tuple[str, ...] = ("float64", "float32", "bfloat16")


def _thinned(x: torch.Tensor) -> torch.Tensor:
    return x * (torch.rand(x.shape, dtype=x.dtype) > 0.3)


def _noisy(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ weight + torch.randn(x.shape[0], weight.shape[1], dtype=x.dtype))


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT / 4).softmax(-1) @ v


def _binned(x: torch.Tensor) -> torch.Tensor:
    bins = torch.arange(x.numel()) % 7
    return x.new_zeros(7).index_add(0, bins, x.flatten())


REPEATED = (
    Repeated("softmax", Softmax.apply, lambda r: (r(5, 9),)),
    Repeated("log_softmax, saturated", lambda x: x.log_softmax(-1), lambda r: (8 * r(5, 9),)),
    Repeated("logsumexp", LogSumExp.apply, lambda r: (3 * r(6, 8),)),
    Repeated("sigmoid, saturated", Sigmoid.apply, lambda r: (6 * r(40),)),
    Repeated("layer norm", LayerNorm.apply, lambda r: (r(6, 12), r(12), r(12))),
    Repeated("relu of x @ w", lambda x, w: (x @ w).relu(), lambda r: (r(6, 5), r(5, 7))),
    Repeated("largest, with ties", lambda x: x.amax(-1), lambda r: ((2 * r(7, 6)).round() / 2,)),
    Repeated(
        "clamp, at its edges", lambda x: x.clamp(-1, 1), lambda r: (r(50).clamp(-1.0, 1.0) * 1.0,)
    ),
    Repeated("max pooling", lambda x: functional.max_pool1d(x, 3, 2), lambda r: (r(2, 3, 15),)),
    Repeated("dropout", lambda x: functional.dropout(x * x, 0.4), lambda r: (r(8, 6),)),
    Repeated("random mask", _thinned, lambda r: (r(8, 6),)),
    Repeated("tanh of noise", _noisy, lambda r: (r(5, 4), r(4, 6))),
    Repeated("attention", _attention, lambda r: (r(2, 5, 8), r(2, 6, 8), r(2, 6, 4))),
    Repeated(
        "convolution",
        lambda x, w, b: functional.conv2d(x, w, b, padding=1),
        lambda r: (r(2, 3, 6, 5), r(4, 3, 3, 3), r(4)),
    ),
    Repeated("cumprod", lambda x: x.cumprod(-1), lambda r: (r(4, 9),)),
    Repeated("norm of short rows", lambda x: x.norm(dim=-1), lambda r: (r(6, 4) * r(6, 1) ** 3,)),
    Repeated("division by small numbers", lambda x, y: x / y, lambda r: (r(30), 0.1 * r(30))),
    Repeated("variance far from 0", lambda x: x.var(-1), lambda r: (r(5, 20) + 6,)),
    Repeated("sums in bins", _binned, lambda r: (r(30, 20),)),
    Repeated("float32 inside", lambda x: x.float().softmax(-1).to(x.dtype), lambda r: (r(5, 9),)),
    Repeated("float32 only", Square32.apply, lambda r: (r(5, 6),), ("float64", "float32")),
)

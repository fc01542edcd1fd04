"""Operators at any size, right or with a fault planted in the gradient of one input."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.numerics.directions import move_scale
from gradlint.trace.problem import Problem
from tests.benchmarks.support.faults import FACTOR, Faulty, sizeable_place

Tensors = tuple[torch.Tensor, ...]


class TripleSquare(torch.autograd.Function):
    """x², whose backward returns 3xg instead of 2xg."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return 3 * ctx.saved_tensors[0] * grad


@dataclass(frozen=True)
class Scale:
    """An operator at any size.

    Args:
        call: the operator.
        make: its arguments in float64, the first of about this many elements; floating ones are
            differentiable.
    """

    call: Callable[..., torch.Tensor]
    make: Callable[[int, torch.Generator], Tensors]


def _normal(*shape: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _rows(size: int, width: int) -> int:
    return max(1, round(size / width))


def _vector(size: int, generator: torch.Generator) -> Tensors:
    return (_normal(size, generator=generator),)


def _matrix(size: int, generator: torch.Generator) -> Tensors:
    return (_normal(_rows(size, 50), 50, generator=generator),)


def _matmul(size: int, generator: torch.Generator) -> Tensors:
    return (
        _normal(_rows(size, 32), 32, generator=generator),
        _normal(32, 16, generator=generator),
    )


def _layer_norm(size: int, generator: torch.Generator) -> Tensors:
    x, weight, bias = (
        _normal(*s, generator=generator) for s in ((_rows(size, 50), 50), (50,), (50,))
    )
    return x, weight, bias


def _conv(size: int, generator: torch.Generator) -> Tensors:
    side = max(3, round(math.sqrt(size / 4)))
    return (
        _normal(1, 4, side, side, generator=generator),
        _normal(4, 4, 3, 3, generator=generator),
        _normal(4, generator=generator),
    )


def _embedding(size: int, generator: torch.Generator) -> Tensors:
    rows = _rows(size, 10)
    index = torch.randint(rows, (2 * rows,), generator=generator)
    return _normal(rows, 10, generator=generator), index


def _indexed(size: int, generator: torch.Generator) -> Tensors:
    return _normal(size, generator=generator), torch.randint(size, (size,), generator=generator)


#: The operators of the benchmark.
SCALES: dict[str, Scale] = {
    "identity": Scale(lambda x: x.clone(), _vector),
    "square": Scale(lambda x: x * x, _vector),
    "relu": Scale(torch.relu, _vector),
    "matmul": Scale(torch.matmul, _matmul),
    "softmax": Scale(lambda x: x.softmax(-1), _matrix),
    "layer norm": Scale(lambda x, w, b: F.layer_norm(x, (50,), w, b), _layer_norm),
    "conv2d": Scale(lambda x, w, b: F.conv2d(x, w, b, padding=1), _conv),
    "embedding": Scale(lambda w, index: F.embedding(index, w), _embedding),
    "gather": Scale(lambda x, index: x.gather(0, index), _indexed),
    "scatter": Scale(lambda x, index: torch.zeros_like(x).scatter_add(0, index, x), _indexed),
    "cumsum": Scale(lambda x: x.cumsum(0), _vector),
}

#: Square whose whole backward is wrong, where fast mode passes from 10⁴ elements on.
TRIPLE = "square with backward 3xg"


def problem_of(
    name: str, size: int, dtype: torch.dtype, seed: int, fault: str | None
) -> tuple[Problem, float]:
    """Operator ``name`` at ``size`` elements, and the share ‖e∘u‖ / ‖g∘u‖ that its fault makes
    of the gradient along a direction that moves every element as far as gradlint does.

    Args:
        name: of :data:`SCALES`, or :data:`TRIPLE`.
        seed: of the values, and of the place of the fault.
        fault: of ``_faults.FAULTS``, planted in the gradient of the first input; None for none.
    """
    generator = torch.Generator().manual_seed(seed)
    call: Callable[..., torch.Tensor]
    if name == TRIPLE:
        call, make = TripleSquare.apply, _vector
    else:
        call, make = SCALES[name].call, SCALES[name].make
    args = [
        item.to(dtype).requires_grad_() if item.is_floating_point() else item
        for item in make(size, generator)
    ]
    share = 0.5 if name == TRIPLE else 0.0
    if fault is not None:
        correct = call
        place, share = _place(correct, args, generator)
        share = 0.01 if fault == FACTOR else share

        def call(first: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
            return correct(Faulty.apply(first, fault, place), *rest)

    sample = Sample("s", "benchmark", tuple(args))
    return Problem(Op(name, name, "callable", call), sample, seed=seed), share


def _place(
    call: Callable[..., torch.Tensor], args: list[torch.Tensor], generator: torch.Generator
) -> tuple[int, float]:
    """Where the gradient of the first of ``args`` is not negligible, and its share there."""
    output = call(*args)
    v = torch.randint(0, 2, output.shape, generator=generator) * 2.0 - 1.0
    (gradient,) = torch.autograd.grad(output, args[0], v.to(output.dtype))
    place = sizeable_place(gradient, generator)
    assert place is not None
    worth = (gradient.abs() * move_scale(args[0])).flatten()
    return place, float(worth[place] / worth.norm())

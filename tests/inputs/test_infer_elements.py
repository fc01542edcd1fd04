"""Integers that forward takes out of a tensor one by one, and slices or indexes with."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class SpanMean(Function):
    """Refuses what is no span, whatever its dtype: only its use says that it is of integers."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        if spans.min() < 0 or (spans[:, 0] > spans[:, 1]).any():
            raise ValueError("a span is a start and an end")
        ctx.save_for_backward(spans)
        ctx.length = x.shape[0]
        return torch.stack([x[a : b + 1].mean() for a, b in spans.tolist()])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (spans,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.length)
        for k, (a, b) in enumerate(spans.tolist()):
            out[a : b + 1] += grad[k] / (b + 1 - a)
        return out, None


class Documented(SpanMean):
    """Means of x (N,) over integer spans (S, 2), ends included."""


class Pairs(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[i] * x[j] for i, j in zip(left.tolist(), right.tolist())])  # noqa: B905


class Numbers(Function):
    """Scales x (N,) by integer power, and by the numbers of a list."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, power: int, factors: torch.Tensor) -> torch.Tensor:
        return x**power * sum(f * 2 for f in factors.tolist())


@pytest.mark.parametrize("op", [SpanMean, Documented])
def test_bounds_of_slices_are_integers(op: type) -> None:
    x, spans = infer(from_object(op), 0)[0].args
    assert x.dim() == 1
    assert spans.dtype == torch.int64
    assert spans.shape[1] == 2
    assert bool((spans[:, 0] <= spans[:, 1]).all())
    assert int(spans.max()) < len(x)


def test_elements_that_index_are_integers() -> None:
    weights = {item.name: item.weights for item in gather(from_object(Pairs))}
    assert weights["left"]["index"] > 2
    assert weights["right"]["index"] > 2


def test_elements_that_are_computed_with_are_not() -> None:
    known = {item.name: item for item in gather(from_object(Numbers))}
    assert "index" not in known["factors"].weights
    assert "index" not in known["power"].weights

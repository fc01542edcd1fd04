"""GL401 where inputs whose elements are all equal have other values: weights of ones, biases of
zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Affine(Function):
    """weight·sin(x + bias)."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight, bias)
        return weight * (x + bias).sin()

    @staticmethod
    def backward(ctx, g):
        x, weight, bias = ctx.saved_tensors
        grad_x = g * weight * (x + bias).cos()
        return grad_x, (g * (x + bias).sin()).sum(0), grad_x.sum(0)


class WeightLeftOut(Affine):
    @staticmethod
    def backward(ctx, g):
        _, grad_weight, grad_bias = Affine.backward(ctx, g)
        x, _, bias = ctx.saved_tensors
        return g * (x + bias).cos(), grad_weight, grad_bias


class BiasLeftOut(Affine):
    @staticmethod
    def backward(ctx, g):
        grad_x, _, grad_bias = Affine.backward(ctx, g)
        return grad_x, (g * ctx.saved_tensors[0].sin()).sum(0), grad_bias


class Module(torch.nn.Module):
    def __init__(self, op: Any) -> None:
        super().__init__()
        self.op = op
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.bias = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return self.op.apply(x, self.weight, self.bias)


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))

# What is left out, of which input the gradient is wrong, and by the elements of which it shows.
FAULTS = [(WeightLeftOut, "x", "weight", 1), (BiasLeftOut, "weight", "bias", 0)]


def findings(probed: Callable[..., Outcome], op: Any, *args: Any, **kwargs: Any) -> list[Any]:
    rule = by_code("GL401")
    assert rule is not None
    return probed(rule, op, *args, **kwargs).findings


@pytest.mark.parametrize("module", [False, True], ids=["function", "module"])
@pytest.mark.parametrize(("op", "wrong", "equal", "value"), FAULTS)
def test_what_is_left_out_shows(
    probed: Callable[..., Outcome], op: Any, wrong: str, equal: str, value: int, module: bool
) -> None:
    args = (Module(op), X) if module else (op, X, torch.ones(4), torch.zeros(4))
    (finding,) = findings(probed, *args)
    assert finding.message == f"wrong gradient for `{wrong}` where the elements of `{equal}` differ"
    assert (finding.cause, finding.input) == ("argument-left-out", wrong)
    told = f"argument left out: where `{equal}` is {value} everywhere the gradient is right"
    assert finding.cause_text.startswith(told)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_right_whatever_the_elements_are(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    assert findings(probed, Module(Affine), X, dtype=dtype) == []
    assert findings(probed, Affine, X, torch.ones(4), torch.zeros(4), dtype=dtype) == []


def test_where_forward_refuses_other_values_nothing_is_said(
    probed: Callable[..., Outcome],
) -> None:
    class OnesOnly(WeightLeftOut):
        @staticmethod
        def forward(ctx, x, weight, bias):
            if not bool((weight == 1).all()):
                raise ValueError("weights must be 1")
            return Affine.forward(ctx, x, weight, bias)

    uneven = torch.tensor([0.1, -0.3, 0.2, 0.4])
    assert findings(probed, OnesOnly, X, torch.ones(4), uneven) == []


def test_a_fault_at_the_sample_is_told_once(probed: Callable[..., Outcome]) -> None:
    (finding,) = findings(probed, WeightLeftOut, X, torch.full((4,), 2.0), torch.zeros(4))
    assert finding.message == "wrong gradient for `x`"

"""The anatomy gives numbers for whatever tensor an op takes or returns."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.model.sample import Sample
from gradlint.targets.build import from_object
from gradlint.trace.anatomy import anatomy, tensor_facts
from gradlint.trace.problem import Problem
from gradlint.trace.record import record


class Scale(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, k: float) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, w)
        return x * w * k, x.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor, h: Tensor) -> Any:
        x, w = ctx.saved_tensors
        return g * w * 2 + h, (g * x * 2)[None], None


def test_every_role_is_there_in_order() -> None:
    x = torch.randn(3, requires_grad=True)
    w = torch.randn(3, requires_grad=True)
    bound = Problem(from_object(Scale), Sample("s", "spec", (x, w, 2.0)), seed=1)
    facts = anatomy(record(bound), bound)
    assert [(fact.role, fact.name) for fact in facts] == [
        ("argument", "x"),
        ("argument", "w"),
        ("argument", "k"),
        ("output", "output[0]"),
        ("output", "output[1]"),
        ("grad_output", "grad_output[0]"),
        ("grad_output", "grad_output[1]"),
        ("gradient", "x"),
        ("gradient", "w"),
        ("gradient", "k"),
        ("saved", "x"),
        ("saved", "w"),
    ]
    assert facts[2].text == "2.0"
    assert facts[8].shape == [1, 3]  # before the engine sums it
    assert facts[9].text == "None"
    assert facts[-1].nbytes == 12
    assert facts[0].norm == pytest.approx(float(x.detach().norm()))


def test_modules_show_parameters() -> None:
    layer = torch.nn.Linear(3, 2)
    bound = Problem(from_object(layer), Sample("s", "spec", (torch.randn(4, 3),)), seed=1)
    names = [(fact.role, fact.name) for fact in anatomy(record(bound), bound)]
    assert ("argument", "weight") in names
    assert ("gradient", "bias") in names


def test_forward_that_raises_shows_the_arguments() -> None:
    def op(x: Tensor) -> Tensor:
        raise ValueError

    bound = Problem(from_object(op), Sample("s", "spec", (torch.ones(2),)), seed=1)
    assert [fact.role for fact in anatomy(record(bound), bound)] == ["argument"]


def test_counts_are_of_all_and_numbers_of_finite_values() -> None:
    value = torch.tensor([[3.0, math.nan, -4.0], [math.inf, -math.inf, 0.0]])
    fact = tensor_facts("output", "y", value)
    assert (fact.nan, fact.inf, fact.min, fact.max, fact.norm) == (1, 2, -4.0, 3.0, 5.0)
    assert (fact.shape, fact.stride, fact.dtype, fact.nbytes) == ([2, 3], [3, 1], "float32", 24)


@pytest.mark.parametrize(
    ("value", "minimum", "maximum", "norm"),
    [
        (torch.tensor([1, -2, 2]), -2.0, 2.0, 3.0),
        (torch.tensor([True, False]), 0.0, 1.0, 1.0),
        (torch.tensor([3 + 4j, 0j]), 0.0, 5.0, 5.0),
        (torch.tensor(7.0), 7.0, 7.0, 7.0),
        (torch.empty(0, 3), None, None, None),
        (torch.full((2,), math.nan), None, None, None),
        (torch.tensor([1e300, 1e300], dtype=torch.float64), 1e300, 1e300, math.sqrt(2) * 1e300),
        (torch.tensor([1e-300], dtype=torch.float64), 1e-300, 1e-300, 1e-300),
        (torch.zeros(3), 0.0, 0.0, 0.0),
        (torch.tensor([2.0, 4.0], dtype=torch.bfloat16), 2.0, 4.0, math.sqrt(20)),
        (torch.ones(2, 3).t()[:, ::2].expand(3, 1), 1.0, 1.0, math.sqrt(3)),
        (torch.tensor([[0.0, 3.0], [4.0, 0.0]]).to_sparse(), 3.0, 4.0, 5.0),
    ],
)
def test_kinds_of_tensors(
    value: Tensor, minimum: float | None, maximum: float | None, norm: float | None
) -> None:
    fact = tensor_facts("argument", "x", value)
    assert fact.min == (None if minimum is None else pytest.approx(minimum))
    assert fact.max == (None if maximum is None else pytest.approx(maximum))
    assert fact.norm == (None if norm is None else pytest.approx(norm))
    assert fact.shape == list(value.shape)


def test_tensors_without_numbers_do_not_raise() -> None:
    meta = tensor_facts("argument", "x", torch.ones(2, device="meta"))
    assert (meta.text, meta.min, meta.nbytes) == ("meta", None, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
        compressed = torch.eye(2).to_sparse_csr()
    assert tensor_facts("argument", "x", nested).role == "argument"
    fact = tensor_facts("argument", "x", compressed)
    assert (fact.text, fact.max, fact.nbytes) == ("sparse_csr", 1.0, 48)

"""Functions that are constant but for rounding: no fault is made of what is left of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.experiments.rounding_only import only_rounding


def found(op: Callable[..., Tensor], seed: int, dtype: str) -> list[tuple[str, str]]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 5, dtype=torch.float64, generator=generator).requires_grad_()
    report = gradlint.check(op, (x,), dtypes=[dtype], select=["GL401", "GL402", "GL501"], seed=seed)
    return [(f.code, f.severity) for t in report.targets for f in t.findings]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize(
    "op",
    [
        lambda x: F.layer_norm(x, (5,)).sum(-1),
        lambda x: (x - x.mean(-1, keepdim=True)).sum(-1),
        lambda x: x.softmax(-1).sum(-1),
    ],
    ids=["layer norm", "centred", "softmax"],
)
def test_right_ones_are_silent(op: Callable[..., Tensor], dtype: str) -> None:
    assert [found(op, seed, dtype) for seed in range(2)] == [[]] * 2


class Probabilities(Function):
    """Softmax whose backward adds a constant: wrong wherever its rows are summed, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)) + 1e-3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_wrong_gradient_of_a_constant_is_found(dtype: str) -> None:
    told = found(lambda x: Probabilities.apply(x).sum(-1), 0, dtype)
    assert "GL401" in [code for code, severity in told if severity != "info"]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (lambda x: x.softmax(-1).sum(-1), {0}),
        (lambda x: x.softmax(-1), set()),
        (lambda x: 1e-30 * x.sin(), set()),
        (lambda x: x.detach() * 0 + x * 0, set()),
    ],
)
def test_what_is_nothing_but_rounding(
    subject: Callable[..., Any], op: Callable[..., Tensor], expected: set[int]
) -> None:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    assert only_rounding(subject(op, x)) == expected

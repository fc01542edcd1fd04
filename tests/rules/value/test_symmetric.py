"""GL401 where an op relies on matrices that its callers make symmetric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch

from gradlint.rules.catalogue import by_code

#: xᵀ A x for each row of x: the gradient is x (A + Aᵀ).
SOURCE = '''
import torch

class Quadratic(torch.autograd.Function):
    """Energies of the rows of x."""

    @staticmethod
    def forward(ctx, x, matrix):
        ctx.save_for_backward(x, matrix)
        return (x @ matrix * x).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, matrix = ctx.saved_tensors
        # {comment}
        grad_x = {gradient} * grad_output.unsqueeze(-1)
        return grad_x, x.mT @ (x * grad_output.unsqueeze(-1))
'''

HALF = "2 * x @ matrix"
RELIES = "the factor of 2 exploits symmetry"


def found(
    load_module: Callable[..., ModuleType],
    subject: Callable[..., Any],
    comment: str,
    gradient: str,
    origin: str = "inferred",
) -> list[Any]:
    module = load_module(SOURCE.format(comment=comment, gradient=gradient))
    generator = torch.Generator().manual_seed(0)
    shapes = ((4, 3), (3, 3))
    bound = subject(module.Quadratic, *(torch.randn(s, generator=generator) for s in shapes))
    bound.sample = replace(bound.sample, origin=origin)
    rule = by_code("GL401")
    assert rule is not None
    assert rule.probe is not None
    return rule.probe(bound).findings


def test_a_guess_that_is_not_symmetric_is_questioned(
    load_module: Callable[..., ModuleType], subject: Callable[..., Any]
) -> None:
    (finding,) = found(load_module, subject, RELIES, HALF)
    assert (finding.severity, finding.input, finding.cause) == ("warning", "x", None)
    assert finding.cause_text == (
        "the gradient is right where `matrix` is symmetric; the source speaks of symmetry"
    )
    assert finding.help.startswith("if `matrix` is symmetric wherever the op is called, say so")


@pytest.mark.parametrize(
    ("comment", "gradient", "origin"),
    [
        ("twice", HALF, "inferred"),
        ("for symmetric quantization", HALF, "inferred"),
        ("also for asymmetric matrices", HALF, "inferred"),
        (RELIES, HALF, "--inputs"),
        (RELIES, "x @ matrix", "inferred"),
    ],
)
def test_everything_else_stays_an_error(
    comment: str,
    gradient: str,
    origin: str,
    load_module: Callable[..., ModuleType],
    subject: Callable[..., Any],
) -> None:
    (finding,) = found(load_module, subject, comment, gradient, origin)
    assert finding.severity == "error"
    assert "symmetric" not in finding.cause_text


def test_a_right_gradient_is_not_asked(
    load_module: Callable[..., ModuleType], subject: Callable[..., Any]
) -> None:
    assert not found(load_module, subject, RELIES, "x @ (matrix + matrix.mT)")


class Cubed(torch.autograd.Function):
    """A³ for the matrices of a batch."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a)
        return a @ a @ a

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (a,) = ctx.saved_tensors
        return (g @ a @ a + a @ g @ a + a @ a @ g).mT


class CubedOfCovariance(Cubed):
    """The third power of a covariance matrix."""


class CubedWrong(Cubed):
    """The third power of a covariance matrix."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (a,) = ctx.saved_tensors
        return g @ a @ a + a @ g @ a


@pytest.mark.parametrize(
    ("op", "is_symmetric", "severity"),
    [
        (Cubed, True, "warning"),
        (CubedOfCovariance, True, "info"),
        (CubedOfCovariance, False, "error"),
        (CubedWrong, True, "error"),
    ],
)
def test_what_symmetric_matrices_that_were_given_do_not_feel(
    op: Any, is_symmetric: bool, severity: str, subject: Callable[..., Any]
) -> None:
    a = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    bound = subject(op, (a + a.mT) / 2 if is_symmetric else a)
    bound.sample = replace(bound.sample, origin="--inputs")
    rule = by_code("GL401")
    assert rule is not None
    assert rule.probe is not None
    (finding,) = rule.probe(bound).findings
    assert finding.severity == severity
    assert ("along symmetric directions" in finding.cause_text) is (severity != "error")
    assert ("speaks of symmetry" in finding.cause_text) is (severity == "info")

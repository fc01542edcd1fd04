"""GL401 on complex operators: PyTorch's convention is the conjugate of the Wirtinger derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.model.rule import Outcome
from gradlint.rules.value.wrong_gradient import RULE

GENERATOR = torch.Generator().manual_seed(0)
Z = torch.randn(3, 4, dtype=torch.complex128, generator=GENERATOR)
X = torch.randn(3, 4, dtype=torch.float64, generator=GENERATOR)


def op(forward: Callable[..., Any], backward: Callable[..., Any]) -> type:
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return forward(z)

        @staticmethod
        def backward(ctx, g):
            return backward(*ctx.saved_tensors, g)

    return Op


def phase(x: torch.Tensor) -> torch.Tensor:
    return torch.polar(torch.ones_like(x), x)


def squared(z: torch.Tensor) -> torch.Tensor:
    return (z * z.conj()).real


RIGHT: dict[str, tuple[Callable[..., Any], Callable[..., Any], torch.Tensor]] = {
    "C to R": (squared, lambda z, g: 2 * g * z, Z),
    "R to C": (phase, lambda x, g: (g.conj() * 1j * phase(x)).real, X),
    "holomorphic": (torch.exp, lambda z, g: g * z.exp().conj(), Z),
    "neither": (lambda z: z.conj() * z, lambda z, g: g.conj() * z + g * z, Z),
    "direction": (
        lambda z: z / z.abs(),
        lambda z, g: (g - z * (g.conj() * z).real / z.abs() ** 2) / z.abs(),
        Z,
    ),
}

WRONG: dict[str, tuple[Callable[..., Any], Callable[..., Any], torch.Tensor, str | None]] = {
    "C to R": (squared, lambda z, g: 2 * g * z.conj(), Z, "conjugate"),
    "half": (squared, lambda z, g: g * z, Z, "scaled"),
    "R to C": (phase, lambda x, g: (g * 1j * phase(x)).real, X, None),
    "holomorphic": (torch.exp, lambda z, g: g * z.exp(), Z, "conjugate"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_ones_pass(name: str, probed: Callable[..., Outcome]) -> None:
    forward, backward, value = RIGHT[name]
    outcome = probed(RULE, op(forward, backward), value)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ones_fail(name: str, probed: Callable[..., Outcome]) -> None:
    forward, backward, value, cause = WRONG[name]
    outcome = probed(RULE, op(forward, backward), value)
    assert outcome.verdict == "fail"
    (finding,) = outcome.findings
    if cause is not None:
        assert finding.cause == cause

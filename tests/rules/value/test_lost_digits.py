"""Errors at large magnitudes: rounding that grows with them, and faults that only show there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from gradlint.experiments.subject import Subject
from gradlint.experiments.value.lost_digits import is_lost_in_rounding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

#: A time limit that leaves time enough on a busy machine, too.
PATIENT_S = 6000.0


def elementwise(forward: Any, slope: Any) -> type:
    """An op whose backward multiplies by ``slope(x)``."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * slope(*ctx.saved_tensors)

    return Op


def softplus(x: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def huber(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < 8, 0.5 * x * x, 8 * (x.abs() - 4))


#: A forward, and slopes that are right in exact arithmetic, but lose their digits to cancellation.
CANCELS = {
    "one added": (
        lambda x: x.abs(),
        lambda x: x.sign() * ((1 + (-x.abs()).exp()) - 1) * x.abs().exp(),
    ),
    "difference of exponentials": (
        lambda x: x.square(),
        lambda x: 2 * x * ((1 + 3 * (-x.abs() / 3).exp()) - 1) * (x.abs() / 3).exp() / 3,
    ),
    "powers": (
        lambda x: x.abs(),
        lambda x: x.sign() * ((1 + (1 + x.abs()) ** -8.0) - 1) * (1 + x.abs()) ** 8,
    ),
}

#: Faults that show at large values only.
FAULTS = {
    "clamp left out": (huber, lambda x: x),
    "other threshold": (huber, lambda x: torch.where(x.abs() < 5, x, 8 * x.sign())),
    "threshold and rounding": (
        lambda x: x.abs(),
        lambda x: torch.where(
            x.abs() < 8, x.sign() * ((1 + (-x.abs()).exp()) - 1) * x.abs().exp(), 0.0
        ),
    ),
    "a term that is small at first": (
        lambda x: x,
        lambda x: 1 + 1e-9 * x**6,
    ),
    "a guard that is passed": (
        lambda x: x.abs(),
        lambda x: x.sign() * (-x.abs()).exp() / (-x.abs()).exp().clamp_min(1e-4),
    ),
}


def large(scale: float) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    x = scale * torch.randn(4, 5, generator=generator, dtype=torch.float64)
    return x.requires_grad_()


@pytest.mark.parametrize("scale", [30.0, 100.0, 1000.0])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_large_values_is_no_rounding(
    subject: Callable[..., Subject], name: str, scale: float
) -> None:
    op = subject(elementwise(*FAULTS[name]), large(scale), timeout=PATIENT_S)
    assert not is_lost_in_rounding(op, 0)


# At other scales the error of few elements is too small a share of the whole to be taken up.
@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("one added", 30.0),
        ("one added", 1000.0),
        ("difference of exponentials", 100.0),
        ("difference of exponentials", 1000.0),
        ("powers", 1000.0),
    ],
)
def test_digits_that_cancel_are_rounding(
    subject: Callable[..., Subject], name: str, scale: float
) -> None:
    op = subject(elementwise(*CANCELS[name]), large(scale), timeout=PATIENT_S)
    assert is_lost_in_rounding(op, 0)


def interval(score: torch.Tensor) -> torch.Tensor:
    """log P(between the cuts): far out, a difference of numbers that are both nearly one."""
    return (torch.sigmoid(1.0 - score) - torch.sigmoid(-1.0 - score)).log()


def interval_slope(score: torch.Tensor, share: float = 1.0) -> torch.Tensor:
    high, low = torch.sigmoid(1.0 - score), torch.sigmoid(-1.0 - score)
    return -(high * (1 - high) - share * low * (1 - low)) / (high - low)


def three(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("seed", range(6))
def test_one_element_that_has_lost_its_digits_is_enough(seed: int) -> None:
    op = elementwise(interval, interval_slope)
    sample = Sample("s", "sample_inputs", (three(5.1, 3.6, -35.8),))
    there = Subject(from_object(op), sample, Settings(seed=seed, timeout=PATIENT_S))
    assert is_lost_in_rounding(there, 0)


@pytest.mark.parametrize("seed", range(6))
def test_one_element_beyond_a_threshold_is_no_rounding(seed: int) -> None:
    op = elementwise(*FAULTS["clamp left out"])
    sample = Sample("s", "sample_inputs", (three(5.1, 3.6, -35.8),))
    there = Subject(from_object(op), sample, Settings(seed=seed, timeout=PATIENT_S))
    assert not is_lost_in_rounding(there, 0)


def test_a_right_gradient_is_not_asked_for_long(subject: Callable[..., Subject]) -> None:
    op = subject(elementwise(softplus, torch.sigmoid), large(30.0))
    before = op.problem.forward_calls
    assert not is_lost_in_rounding(op, 0)
    assert op.problem.forward_calls - before <= 12

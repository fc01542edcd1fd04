"""NaN where an iteration starts too far away, and where constants mark what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.checking.severity import decided
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL303 = by_code("GL303")

PRICES = torch.tensor([0.98, 1.05, 0.9])
T = torch.tensor


class Rate(Function):
    """The rate y with exp(-y) + exp(-2y) + exp(-3y) = price, by Newton's method."""

    @staticmethod
    def forward(ctx: Any, price: Tensor) -> Tensor:
        y, times = torch.ones_like(price), torch.arange(1.0, 4.0, dtype=price.dtype)
        for _ in range(60):
            terms = torch.exp(-y[:, None] * times)
            step = (terms.sum(1) - price) / (terms * times).sum(1)
            y = y + step
            if step.abs().max() <= 4 * torch.finfo(y.dtype).eps:
                break
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        times = torch.arange(1.0, 4.0, dtype=y.dtype)
        return -g / (torch.exp(-y[:, None] * times) * times).sum(1)


class Shifted(Function):
    """log(exp(x) + 1), which overflows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x.exp() + 1).log()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * ctx.saved_tensors[0].sigmoid()


def severities(outcome: Outcome) -> list[str]:
    return [decided(item.severity, item.grounds)[0] for item in outcome.findings]


def test_newtons_method_that_starts_too_far_away_is_information(
    probed: Callable[..., Outcome],
) -> None:
    assert set(severities(probed(GL303, Rate, PRICES))) == {"info"}
    assert set(severities(probed(GL303, Shifted, 1.0 - PRICES))) == {"warning"}


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        (T([0.5, 1.5]), "info"),
        (T([-0.5, -1.5]), "pass"),  # does not overflow there
        (T([-0.5, 1.5]), "warning"),
        (T([0.5, 20.0]), "warning"),  # 150 is not far from 20
        (T([0.0, 0.0]), "warning"),
    ],
)
def test_far_beyond_given_values_of_one_sign_is_information(
    probed: Callable[..., Outcome], given: Tensor, severity: str
) -> None:
    assert set(severities(probed(GL303, Shifted, given))) | {"pass"} == {severity, "pass"}


def residual(mask_inside: bool) -> Any:
    class Residual(Function):
        """Squared distance to what was observed; NaN marks what was not."""

        @staticmethod
        def forward(ctx: Any, x: Tensor, observed: Tensor) -> Tensor:
            there = ~observed.isnan()
            ctx.save_for_backward(x, observed, there)
            return (x - observed)[there].square().sum()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
            x, observed, there = ctx.saved_tensors
            if mask_inside:
                return 2 * g * torch.where(there, x - observed, torch.zeros_like(x)), None
            return 2 * g * (x - observed) * there, None

    return Residual


@pytest.mark.parametrize(("mask_inside", "found"), [(True, 0), (False, 1)])
def test_nan_that_marks_what_is_missing_stays_out_of_gradients(
    mask_inside: bool, found: int
) -> None:
    x = T([0.4, -1.2, 0.7])
    observed = T([0.1, float("nan"), 0.9], dtype=torch.float64)

    given = (x.double().requires_grad_(), observed)
    report = gradlint.check(residual(mask_inside), [given], seed=0, select=["GL302"]).targets[0]
    assert len([item for item in report.findings if item.severity != "info"]) == found


def test_it_is_looked_for_where_no_given_value_is_missing() -> None:

    given = (T([0.4, -1.2, 0.7]), T([0.1, 0.3, 0.9]))
    for mask_inside in (True, False):
        report = gradlint.check(residual(mask_inside), [given], seed=0, order=1).targets[0]
        told = [item.code for item in report.findings if item.severity != "info"]
        assert ("GL302" in told) is not mask_inside

"""GL203 with inputs of mixed dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code

GL203 = by_code("GL203")
BOTH = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def product() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(6, 4, generator=generator), torch.randn(4, 3, generator=generator)


class CastsInForward(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return g @ weight.mT, x.mT @ g


class CastsInBoth(CastsInForward):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return g @ weight.to(g.dtype).mT, (x.mT @ g).to(weight.dtype)


class Refuses(CastsInForward):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight


class CoarseForMixed(Function):
    """x·weight, whose gradients have the dtype of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        return (g * weight).to(x.dtype), (g * x).to(x.dtype)


@BOTH
def test_backward_that_raises_is_information(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    outcome = as_loud_as_evidence(probed(GL203, CastsInForward, *product(), dtype=dtype))
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity) == ("pass", "info")
    assert finding.message.startswith("backward raises with `x` in ")
    assert finding.location is not None


@BOTH
@pytest.mark.parametrize("op", [CastsInBoth, Refuses])
def test_right_ops_and_refusals_pass(
    probed: Callable[..., Outcome], op: Any, dtype: torch.dtype
) -> None:
    outcome = probed(GL203, op, *product(), dtype=dtype)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_a_coarse_gradient_is_a_note(probed: Callable[..., Outcome]) -> None:
    x = product()[0]
    outcome = probed(GL203, CoarseForMixed, x, x.flip(0))
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity, finding.input) == ("pass", "info", "weight")
    assert "with `x` in float32 and the others in float64" in finding.message


def test_one_tensor_can_not_be_mixed(probed: Callable[..., Outcome]) -> None:
    calls = []

    class Sine(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            calls.append(x.dtype)
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * x.cos()

    assert probed(GL203, Sine, product()[0]).verdict == "pass"
    assert set(calls) == {torch.float64}

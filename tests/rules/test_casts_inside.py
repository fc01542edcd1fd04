"""Ops that compute in 16 bits inside, whatever they take and return."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.experiments.differentiable_maps import float64_twin
from gradlint.experiments.subject import Subject
from gradlint.model.events import Found
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class Later(torch.autograd.Function):
    """Casts what it has computed from its input."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.save_for_backward(x)
        ctx.wrong = wrong
        return x.sin().half().exp().to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.sin().exp() * (x.sin() if ctx.wrong else x.cos()), None


class Gated(torch.autograd.Function):
    """Casts both factors of a product."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.save_for_backward(x)
        ctx.wrong = wrong
        return (1.5 * x).bfloat16().mul(x.sigmoid().bfloat16()).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = x.sigmoid()
        slope = s + (0.0 if ctx.wrong else x * s * (1 - s))
        return grad * 1.5 * slope, None


class Projected(torch.autograd.Function):
    """A product of matrices in bfloat16, forward and backward."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.save_for_backward(x)
        ctx.wrong = wrong
        low = x.tanh().bfloat16()
        return (low @ low.mT).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        low, g = x.tanh().bfloat16(), grad.bfloat16()
        both = g if ctx.wrong else g + g.mT
        return (both @ low).to(x.dtype) * (1 - x.tanh() ** 2), None


OPS = (Later, Gated, Projected)


def findings(function: type, dtype: torch.dtype, *, wrong: bool) -> list[Finding]:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64).to(dtype)
    sample = Sample("s", "--inputs", (x.requires_grad_(), wrong))
    events: list[Any] = []
    settings = Settings(
        seed=3, select=("GL4", "GL5", "GL801"), dtypes=(str(dtype).removeprefix("torch."),)
    )
    examine(from_object(function), [sample], settings, events.append)
    # The flag that plants the fault is moved, too, like any other that is given.
    found = [event.finding for event in events if isinstance(event, Found)]
    return [finding for finding in found if "with wrong=" not in finding.message]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", OPS)
def test_right_gradients_pass(function: type, dtype: torch.dtype) -> None:
    assert findings(function, dtype, wrong=False) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", OPS)
def test_wrong_gradients_are_found(function: type, dtype: torch.dtype) -> None:
    told = findings(function, dtype, wrong=True)
    assert ("GL401", "error", "x") in {(one.code, one.severity, one.input) for one in told}


def test_the_twin_is_without_casts() -> None:
    x = torch.linspace(-1.0, 1.0, 7, dtype=torch.float64, requires_grad=True)
    sample = Sample("s", "--inputs", (x,))
    rounded = from_object(lambda x: x.sin().half().exp().to(x.dtype))
    twin = float64_twin(Subject(rounded, sample, Settings()).problem)
    assert twin is not None
    assert twin.stands_for == torch.float16
    torch.testing.assert_close(twin.outputs[0], x.detach().sin().exp(), rtol=1e-15, atol=0.0)
    plain = from_object(lambda x: x.sin().exp())
    assert float64_twin(Subject(plain, sample, Settings()).problem) is None


class Weighed(torch.nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(0.7, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


@pytest.mark.parametrize(
    ("x", "weight", "expected"),
    [
        (torch.complex128, torch.float32, torch.float64),
        (torch.float64, torch.complex64, torch.complex128),
        (torch.complex64, torch.float64, torch.float32),
        (torch.float32, torch.complex128, torch.complex64),
    ],
)
def test_parameters_have_the_precision_of_the_inputs(
    x: torch.dtype, weight: torch.dtype, expected: torch.dtype
) -> None:
    op = from_object(Weighed(weight))
    value = torch.tensor([0.3, -1.2], dtype=x, requires_grad=True)
    subject = Subject(op, Sample("given", "given", (value,)), Settings())
    assert subject.problem.inputs[1].value.dtype == expected
    assert subject.first_order.verdicts == ["agrees", "agrees"]
    twin = float64_twin(subject.problem)
    assert twin is None or twin.twin is None

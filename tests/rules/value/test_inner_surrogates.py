"""Modules that call Functions which round or step: no errors, where all else is right. Near them:
modules with a wrong gradient besides, and Functions that are no surrogates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Spike(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0.25).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1.0 + (x - 0.25).abs()).square()


class SurrogateSpike(Spike):
    """The same, and its name says so."""


class ScaledRound(Function):
    """Rounds to 31 levels of the largest element: a straight-through estimator."""

    @staticmethod
    def forward(ctx, x):
        scale = 15.0 / x.abs().amax(-1, keepdim=True)
        return (x * scale).round() / scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


class UnsaidRound(ScaledRound):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


class HalvedRound(ScaledRound):
    @staticmethod
    def backward(ctx, grad_output):
        return 0.5 * grad_output


class SpikeElsewhere(Spike):
    """A bump, but not over the step."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1.0 + (x - 1.5).abs()).square()


class WrongSquare(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x


class Of(nn.Module):
    """``after(function(before(x)))`` beside a path without the function."""

    def __init__(self, *functions: type[Function]) -> None:
        super().__init__()
        self.functions = functions
        self.weight = nn.Parameter(torch.linspace(0.3, 1.7, 4, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.sin(1.3 * x * self.weight)
        for function in self.functions:
            h = h * function.apply(h)
        return h + x.square()


class Sign(Function):
    """sign(w) with the straight-through estimator, the gradient of hardtanh."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0).to(w)

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        return grad_output * (w.abs() <= 1.0)


class SignUnbounded(Sign):
    """sign(w) with the straight-through estimator."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


class SignOutside(Sign):
    """sign(w) with the straight-through estimator, the wrong way round."""

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        return grad_output * (w.abs() > 1.0)


class SignHalved(Sign):
    """sign(w) with the straight-through estimator, but for a factor."""

    @staticmethod
    def backward(ctx, grad_output):
        return 0.5 * grad_output


class SignUnsaid(Sign):
    """sign(w)."""

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        return grad_output * (w.abs() <= 1.0)


class Binary(nn.Module):
    """A linear layer with binary weights."""

    def __init__(self, function: type[Function], *, forgotten: bool = False) -> None:
        super().__init__()
        self.function, self.forgotten = function, forgotten
        self.weight = nn.Parameter(torch.linspace(-1.7, 1.9, 12, dtype=torch.float64).view(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.function.apply(self.weight).mT
        return WrongSquare.apply(y) if self.forgotten else y


class ScaledSign(Function):
    """sign(w) with the straight-through estimator where |w| <= 1, times the mean of |w|, which is
    differentiated."""

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return w.sign() * w.abs().mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        through = grad_output * w.abs().mean(1, keepdim=True) * (w.abs() <= 1.0)
        return through + w.sign() * (grad_output * w.sign()).mean(1, keepdim=True)


class ScaledSignSummed(ScaledSign):
    """sign(w) with the straight-through estimator where |w| <= 1, times the mean of |w|, which is
    differentiated."""

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        through = grad_output * w.abs().mean(1, keepdim=True) * (w.abs() <= 1.0)
        return through + w.sign() * (grad_output * w.sign()).sum(1, keepdim=True)


class ClampSte(Function):
    """torch.clamp with a straight-through gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ClampBounded(ClampSte):
    """Straight-through inside of the bounds."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ClampScaled(ClampSte):
    """torch.clamp with a straight-through gradient."""

    @staticmethod
    def backward(ctx, grad_output):
        return 0.5 * grad_output


class ClampUnsaid(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ClampOfForward(ClampSte):
    """Clamps: what lies within the bounds goes straight through."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class ClampInBackward(ClampSte):
    """Clamps."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output  # goes straight through


class MaskSte(Function):
    @staticmethod
    def forward(ctx, x, mask):
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class Mask(MaskSte):
    """Nothing is said."""


def numbers() -> Tensor:
    torch.manual_seed(7)
    return torch.randn(3, 4, dtype=torch.float64).requires_grad_()


def severities(outcome: Outcome) -> set[str]:
    return {item.severity for item in as_loud_as_evidence(outcome).findings}


@pytest.mark.parametrize(
    ("functions", "expected"),
    [
        ((Spike,), {"info"}),
        ((SpikeElsewhere,), {"warning"}),
        ((SurrogateSpike,), {"info"}),
        ((ScaledRound,), {"info"}),
        ((UnsaidRound,), {"info"}),
        ((HalvedRound,), {"error"}),
        ((WrongSquare,), {"error"}),
        ((Spike, WrongSquare), {"error"}),
        ((ScaledRound, WrongSquare), {"error"}),
    ],
)
def test_modules(
    probed: Callable[..., Outcome], functions: tuple[Any, ...], expected: set[str]
) -> None:
    outcome = probed(by_code("GL401"), Of(*functions), numbers())
    assert severities(outcome) == expected
    for item in outcome.findings:
        named = f"`{functions[0].__name__}`" in item.cause_text
        assert named == (expected != {"error"})


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (Sign, "info"),
        (SignUnbounded, "info"),
        (SignOutside, "warning"),
        (SignHalved, "warning"),
        (SignUnsaid, "info"),
        (ScaledSign, "info"),
        (ScaledSignSummed, "error"),
    ],
)
def test_layers_of_binary_weights(
    probed: Callable[..., Outcome], function: type[Function], expected: str
) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), Binary(function), numbers()))
    assert {item.input: item.severity for item in outcome.findings} == {"weight": expected}


@pytest.mark.parametrize("function", [Sign, ScaledSign])
def test_a_fault_beside_binary_weights(
    probed: Callable[..., Outcome], function: type[Function]
) -> None:
    module = Binary(function, forgotten=True)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), module, numbers()))
    assert {item.input: item.severity for item in outcome.findings}["x"] in ("error", "warning")


class LearnedStep(Function):
    """Straight-through rounding to the integers of three bits, with a learned step."""

    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return (x / step).round().clamp(-4, 3) * step

    @staticmethod
    def of_step(v):
        inside = v.round() - v
        return torch.where(v < -4, -4.0, torch.where(v > 3, 3.0, inside))

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        v = x / step
        return g * ((v >= -4) & (v <= 3)), (g * LearnedStep.of_step(v)).sum_to_size(step.shape)


class LearnedStepOffByOne(LearnedStep):
    """Straight-through rounding to the integers of three bits, with a learned step."""

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        v = x / step
        of_step = LearnedStep.of_step(v) + (v < -4)
        return g * ((v >= -4) & (v <= 3)), (g * of_step).sum_to_size(step.shape)


class Grouped(nn.Module):
    """One step for each pair of channels, which is laid out anew for the Function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function
        self.step = nn.Parameter(torch.tensor([0.4, 0.5], dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.function.apply(x.unflatten(-1, (2, 2)), self.step[:, None]).flatten(-2)


@pytest.mark.parametrize(
    ("function", "expected"), [(LearnedStep, "info"), (LearnedStepOffByOne, "warning")]
)
def test_documented_rounding_with_a_step_of_its_own(
    probed: Callable[..., Outcome], function: Any, expected: str
) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), Grouped(function), numbers()))
    assert {item.input for item in outcome.findings} == {"x", "step"}
    assert {item.severity for item in outcome.findings} == {expected}


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (ClampSte, "info"),
        (ClampBounded, "warning"),
        (ClampScaled, "error"),
        (ClampUnsaid, "error"),
        (ClampOfForward, "error"),
        (ClampInBackward, "info"),
    ],
)
def test_clamps(probed: Callable[..., Outcome], op: type[Function], expected: str) -> None:
    assert severities(probed(by_code("GL401"), op, numbers())) == {expected}


@pytest.mark.parametrize(("op", "expected"), [(MaskSte, "warning"), (Mask, "error")])
def test_a_product_passes_gradients_on(
    probed: Callable[..., Outcome], op: type[Function], expected: str
) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, numbers(), 1.7 * numbers().exp()))
    assert {item.input: item.severity for item in outcome.findings}["x"] == expected

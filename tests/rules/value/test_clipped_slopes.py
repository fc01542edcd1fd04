"""Slopes that backward clamps to bounds are information. Near them: slopes of another function,
bounds that are not those of a slope, and backwards that do not clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


class Exponential(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x.clamp(-3.0, 3.0).exp()


class ExponentialOnce(Exponential):
    """Wrapped as many are: what clamps is inside of the wrapper."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x.clamp(-3.0, 3.0).exp()


class Saturated(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y).clamp(min=1e-2)


class Zeroed(Exponential):
    """Beyond the bounds, nothing is returned."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x.clamp(-3.0, 3.0).exp() * (x.abs() < 3.0)


class Shifted(Exponential):
    """Clamps, but is off by a factor within the bounds."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 1.1 * grad * x.clamp(-3.0, 3.0).exp()


class Unbounded(Function):
    """relu6 without the bounds: what is returned is one everywhere."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clamp(-3.0, 3.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad.clamp(min=-1e9)


class ClampedGradient(Exponential):
    """Clamps what flows in, by which backward is not linear."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad.clamp(-0.5, 0.5) * x.exp()


class Square(Function):
    """The slope of another function beyond a bound, by ``where``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * torch.where(x.abs() < 3.0, 2 * x, 6.0 * x.sign())


class Companded(Function):
    """Forward is flat beyond its bounds, and backward takes the slope at them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        x = x.clamp(-3.0, 3.0)
        return x.sign() * (4.0 * x.abs()).log1p()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 4.0 / (1.0 + 4.0 * x.clamp(-3.0, 3.0).abs())


class Toe(Function):
    """Straight below a number; backward takes the slope of the curve there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x <= 1.0, 0.6 * x - 0.1, x.clamp(min=1.0).sqrt() - 0.5)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 0.5 * x.clamp(min=1.0).rsqrt()


class Bent(Toe):
    """The slope is clamped at a number of its own, beyond both branches of forward."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        slope = torch.where(x > 1.0, 0.5 * x.abs().rsqrt(), 0.6)
        return grad * slope.clamp(min=0.3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("op", "severities"),
    [
        (Exponential, {"info"}),
        (ExponentialOnce, {"info"}),
        (Saturated, {"info"}),
        (Zeroed, {"error"}),
        (Shifted, {"error"}),
        (Unbounded, {"error"}),
        (ClampedGradient, {"error"}),
        (Square, {"error"}),
        (Companded, {"error"}),
        (Toe, {"error"}),
        (Bent, {"info"}),
    ],
)
def test_slopes(
    probed: Callable[..., Outcome], op: type[Function], severities: set[str], dtype: torch.dtype
) -> None:
    torch.manual_seed(3)
    x = 3.0 * torch.randn(4, 5, dtype=torch.float64)
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x.to(dtype)))
    assert {item.severity for item in outcome.findings} == severities


def test_a_term_that_cancels_but_for_an_epsilon_is_no_fault(
    probed: Callable[..., Outcome],
) -> None:
    class LogSum(Function):
        """The maximum that is taken out cancels but for the epsilon in the logarithm."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            top = x.max()
            e = (x - top).exp()
            ctx.save_for_backward(e)
            return (e.sum() + 1e-6).log() + top

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (e,) = ctx.saved_tensors
            return grad * e / (e.sum() + 1e-6)

    class Shift(LogSum):
        """Here it does not cancel."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            top = x.max()
            e = (x - top).exp()
            ctx.save_for_backward(e)
            return (e.sum() + 1e-6).log()

    torch.manual_seed(3)
    x = torch.randn(6, dtype=torch.float64)
    for op, severity in ((LogSum, "info"), (Shift, "error")):
        outcome = as_loud_as_evidence(probed(by_code("GL401"), op, x))
        assert [item.severity for item in outcome.findings] == [severity]

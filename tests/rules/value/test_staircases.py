"""Quantizers without a word about it, ops that return what they are given, guided backpropagation,
gradients that lead back within bounds, and what is decorated to have no gradient: no errors. Near
them: quantizers whose gradient is wrong in the large too, smooth ops with wrong gradients,
clipping, and gradients that are stopped inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.checking.severity import as_loud_as_evidence
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.staircases import follows_in_the_large
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def in_eight_bits(weight: Tensor) -> Tensor:
    """Rows in 8 bits, by the scale of their largest element, and back again."""
    scale = weight.abs().amax(-1, keepdim=True) / 127.0
    return (weight / scale + 0.5 * weight.sign()).to(torch.int8).to(weight.dtype) * scale


class QuantizedProduct(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ in_eight_bits(weight).mT

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ in_eight_bits(weight), grad_output.mT @ x


class HalvedQuantizedProduct(QuantizedProduct):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ in_eight_bits(weight), 0.5 * grad_output.mT @ x


class Ripples(Function):
    """Smooth, with a gradient that is right on average only: not a staircase of many steps."""

    @staticmethod
    def forward(ctx, x):
        return x + 0.3 * torch.sin(4.0 * x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone() * 0.97


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class DoubledCopy(Doubled):
    @staticmethod
    def forward(ctx, x):
        return x.clone()


class DoubledProduct(Doubled):
    """Nearly what it is given."""

    @staticmethod
    def forward(ctx, x):
        return x * 1.001


class DoubledSum(Doubled):
    """One of two outputs is not what is given."""

    @staticmethod
    def forward(ctx, x):
        return x.clone(), x.exp()

    @staticmethod
    def backward(ctx, *grad_outputs):
        return 2 * sum(grad_outputs)


class Guided(Function):
    """A rectifier that passes on what is positive."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.relu() * (x > 0)


class AboveBound(Function):
    """What moves an element back above the bound passes."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0.1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= 0.1) | (grad_output < 0))


class WithinBounds(Function):
    """Likewise at both bounds."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        stopped = (x < -0.5) & (grad_output > 0) | (x > 0.5) & (grad_output < 0)
        return grad_output.masked_fill(stopped, 0)


class LargeOnly(AboveBound):
    """Leaves small gradients out: those of one sign alone, and not for their sign."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * ((x >= 0.1) | (grad_output < -0.2))


class HalfBack(AboveBound):
    """What moves an element back is halved."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.where(x >= 0.1, 1.0, 0.5 * (grad_output < 0))


class NegativeOnly(AboveBound):
    """Asks for the sign of the gradient where that of x is meant."""

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (grad_output < 0.0)


class Clipped(Guided):
    """Clips in backward, both ways."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.clamp(-0.7, 0.7) * (x > 0)


class Workspace(Guided):
    """Writes every gradient to the same memory."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.mul(grad_output, x > 0, out=WORKSPACE).detach()


class Masked(Function):
    """Follows the smaller of two; backward goes by a mask that happens to leave a column out."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.minimum(2 * x, x.clamp(-0.4, 0.4))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        kept = (x.abs() < 0.4).to(x.dtype)
        kept[..., -1] = 0
        return grad_output * kept


class Constant(Guided):
    """Returns the slope, whatever the gradient that it receives."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (x > 0).to(x.dtype)


WORKSPACE = torch.empty(3, 4, dtype=torch.float64)


@torch.no_grad()
def calibrated(x: Tensor) -> Tensor:
    return x.square().mean()


def stopped(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x.square().mean()


class Calibration(torch.nn.Module):
    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        return x.square().mean()


@pytest.mark.parametrize(
    ("op", "expected"), [(calibrated, "info"), (Calibration(), "info"), (stopped, "error")]
)
def test_what_is_declared_to_have_no_gradient_needs_none(
    probed: Callable[..., Outcome], op: Any, expected: str
) -> None:
    outcome = as_loud_as_evidence(probed(by_code("GL401"), op, numbers(3, 4)))
    assert [(item.input, item.severity) for item in outcome.findings] == [("x", expected)]


def numbers(*shape: int) -> Tensor:
    torch.manual_seed(3)
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize(
    ("op", "shapes", "expected"),
    [
        (QuantizedProduct, [(3, 6), (5, 6)], {"weight": "warning"}),
        (HalvedQuantizedProduct, [(3, 6), (5, 6)], {"weight": "error"}),
        (Ripples, [(4, 6)], {"x": "error"}),
        (Doubled, [(3, 4)], {"x": "warning"}),
        (DoubledCopy, [(3, 4)], {"x": "warning"}),
        (DoubledProduct, [(3, 4)], {"x": "error"}),
        (DoubledSum, [(3, 4)], {"x": "error"}),
        (Guided, [(3, 4)], {"x": "warning"}),
        (AboveBound, [(3, 4)], {"x": "warning"}),
        (WithinBounds, [(3, 4)], {"x": "warning"}),
        (LargeOnly, [(3, 4)], {"x": "error"}),
        (HalfBack, [(3, 4)], {"x": "error"}),
        (NegativeOnly, [(3, 4)], {"x": "error"}),
        (Clipped, [(3, 4)], {"x": "error"}),
        (Workspace, [(3, 4)], {"x": "error"}),
        (Constant, [(3, 4)], {"x": "error"}),
        (Masked, [(3, 4)], {"x": "error"}),
    ],
)
def test_severity(
    probed: Callable[..., Outcome],
    op: type[Function],
    shapes: list[tuple[int, ...]],
    expected: dict[str, str],
) -> None:
    outcome = probed(by_code("GL401"), op, *(numbers(*shape) for shape in shapes))
    assert {i.input: i.severity for i in as_loud_as_evidence(outcome).findings} == expected


def test_the_message_tells_of_the_staircase(probed: Callable[..., Outcome]) -> None:
    outcome = probed(by_code("GL401"), QuantizedProduct, numbers(3, 6), numbers(5, 6))
    (finding,) = outcome.findings
    assert finding.cause == "straight-through"
    assert "forward is a staircase in `weight`" in finding.cause_text


@pytest.mark.parametrize(("op", "expected"), [(QuantizedProduct, [False, True])])
def test_only_what_is_quantized(
    subject: Callable[..., Subject], op: type[Function], expected: list[bool]
) -> None:
    """The gradient of the other factor is right over small steps as well."""
    made = subject(op, numbers(3, 6), numbers(5, 6))
    assert [follows_in_the_large(made, k) for k in range(2)] == expected

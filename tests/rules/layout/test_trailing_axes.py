"""GL706: axes behind the first ones, where code or documentation is written for any number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.experiments.layout.trailing_axes import Trailing, trailing_axes
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def probe(probed: Callable[..., Outcome], op: Any, *args: Any) -> Outcome:
    rule = by_code("GL706")
    assert rule is not None
    return probed(rule, op, *args)


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(str(finding.grounds.where), finding.message) for finding in outcome.findings]


class Affine(Function):
    """One weight a channel."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight.view(1, -1, *[1] * (x.dim() - 2))

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        axes = [axis for axis in range(x.dim()) if axis != 1]
        wide = weight.view(1, -1, *[1] * (x.dim() - 2))
        return grad_output * wide, (grad_output * x).sum(axes)


class HalvesImages(Affine):
    """One weight a channel."""

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = Affine.backward(ctx, grad_output)
        return grad_x, grad_weight / (2 if grad_output.dim() > 3 else 1)


class DoublesRows(Affine):
    """One weight a channel."""

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = Affine.backward(ctx, grad_output)
        return grad_x, grad_weight * (2 if grad_output.dim() == 2 else 1)


class SumsTwoAxes(Affine):
    """One weight a channel."""

    @staticmethod
    def backward(ctx, grad_output):
        x, _ = ctx.saved_tensors
        grad_x, _ = Affine.backward(ctx, grad_output)
        return grad_x, (grad_output * x).sum((0, 2))


class SumsTwoDocumentedAxes(SumsTwoAxes):
    """One weight a channel of x: (N, C, *)."""


class HalvesDocumentedImages(HalvesImages):
    """One weight a channel of x: (N, C, *)."""


class HalvesOthersThanDocumented(HalvesImages):
    """One weight a channel of x: (N, C, L)."""


class Centred(Function):
    """Without the mean over the axes behind the channels."""

    @staticmethod
    def forward(ctx, x):
        axes = tuple(range(2, x.dim()))
        return x - x.mean(axes, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        size = grad_output[0, 0].numel()
        wide = grad_output.reshape(*grad_output.shape[:2], -1)
        return (wide - wide.sum(2, keepdim=True) / size).reshape(grad_output.shape)


class Shuffled(Function):
    """Channels in another order."""

    @staticmethod
    def forward(ctx, x):
        n, c = x.shape[:2]
        return x.reshape(n, 2, c // 2, *x.shape[2:]).transpose(1, 2).reshape(x.shape)

    @staticmethod
    def backward(ctx, grad_output):
        n, c = grad_output.shape[:2]
        tail = grad_output.shape[2:]
        return grad_output.reshape(n, c // 2, 2, *tail).transpose(1, 2).reshape(grad_output.shape)


class ShuffledInOrder(Shuffled):
    """Channels in another order."""

    @staticmethod
    def backward(ctx, grad_output):
        if grad_output.dim() > 3:
            return grad_output.clone()
        return Shuffled.backward(ctx, grad_output)


class Blurred(Function):
    """Rows less the mean of neighbours along the last two axes: made for (h, w)."""

    @staticmethod
    def forward(ctx, x):
        return x - x.mean(-1, keepdim=True).expand(*x.shape[:2], *x.shape[2:])

    @staticmethod
    def backward(ctx, grad_output):
        axis = 2
        return grad_output - grad_output.mean(axis, keepdim=True)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("op", [Affine, HalvesOthersThanDocumented])
def test_right_with_more_and_with_fewer(probed: Callable[..., Outcome], op: Any) -> None:
    assert told(probe(probed, op, rows(3, 4, 5), rows(4))) == []


def test_wrong_with_one_more(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, HalvesImages, rows(3, 4, 5), rows(4))
    assert told(outcome) == [
        ("other-rank", "wrong gradient for `weight` where `x` has shape [3, 4, 5, 3]")
    ]
    assert outcome.findings[0].cause == "rank"
    assert "any number of them" in (outcome.findings[0].help or "")


def test_documentation_makes_it_the_kind_that_was_given(probed: Callable[..., Outcome]) -> None:
    message = "wrong gradient for `weight` where `x` has shape [3, 4, 5, 3]"
    outcome = probe(probed, HalvesDocumentedImages, rows(3, 4, 5), rows(4))
    assert told(outcome) == [("other-size", message)]


def test_wrong_with_one_less(probed: Callable[..., Outcome]) -> None:
    assert told(probe(probed, DoublesRows, rows(3, 4, 5), rows(4))) == [
        ("other-rank", "wrong gradient for `weight` where `x` has shape [3, 4]")
    ]


def test_a_backward_that_raises(probed: Callable[..., Outcome]) -> None:
    """It is as bad as at the sample where documentation says that such shapes are meant."""
    raised = "backward raises RuntimeError where `x` has shape [3, 4, 5, 3]"
    assert told(probe(probed, SumsTwoAxes, rows(3, 4, 5), rows(4))) == [("other-rank", raised)]
    outcome = probe(probed, SumsTwoDocumentedAxes, rows(3, 4, 5), rows(4))
    assert told(outcome) == [("other-size", raised)]


def test_a_mean_over_no_axes_is_no_fault(probed: Callable[..., Outcome]) -> None:
    """PyTorch takes the mean over all axes there: backward is right wherever there are some."""
    shapes = [message[-6:] for _, message in told(probe(probed, Centred, rows(3, 4, 5)))]
    assert "[3, 4]" not in shapes


def test_axes_that_are_carried_along(probed: Callable[..., Outcome]) -> None:
    assert told(probe(probed, Shuffled, rows(3, 4, 5))) == []
    assert told(probe(probed, ShuffledInOrder, rows(3, 4, 5))) == [
        ("other-rank", "wrong gradient for `x` where `x` has shape [3, 4, 5, 3]")
    ]


def test_axes_that_are_carried_along_beside_a_last_one(probed: Callable[..., Outcome]) -> None:
    """Forward counts from the back and does not treat slices along a new last axis alike: it may
    need the number of axes that the sample has."""
    shapes = [message[-12:] for _, message in told(probe(probed, Blurred, rows(3, 4, 5)))]
    assert "[3, 4, 5, 3]" not in shapes


def test_what_is_read(subject: Callable[..., Subject]) -> None:
    def read(op: Any, *args: Any) -> Trailing | None:
        return trailing_axes(subject(op, *args))

    assert read(Affine, rows(3, 4, 5), rows(4)) == Trailing(0, 2, True, False, (0,))
    assert read(Affine, rows(3), rows(1)) is None
    assert read(HalvesDocumentedImages, rows(3, 4, 5), rows(4)) == Trailing(0, 2, True, True, (0,))
    assert read(Centred, rows(3, 4, 5)) == Trailing(0, 2, True, False, (0,))
    assert read(Shuffled, rows(3, 4, 5)) == Trailing(0, 2, False, False, (0,))


class Doubled(Function):
    """Twice x: (N, C, L)."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return torch.cat([x, x], -1)

    @staticmethod
    def backward(ctx, grad_output):
        size = ctx.shape[-1]
        return grad_output[..., :size] + grad_output[..., size:]


class DoubledRows(Doubled):
    """Twice x: (N, C, L)."""

    @staticmethod
    def backward(ctx, grad_output):
        size = ctx.shape[-1]
        return grad_output[:, :size] + grad_output[:, size:]


class DoubledRowsOnly(DoubledRows):
    """Twice x."""


class DoubledMatrices(DoubledRows):
    """Twice x: (N, C, L)."""

    @staticmethod
    def forward(ctx, x):
        assert x.dim() == 2
        return Doubled.forward(ctx, x)


def found_by_name(op: Any) -> list[tuple[str, str]]:
    report = gradlint.check(op, seed=0, order=1, select=["GL004", "GL706"]).targets[0]
    return [(item.severity, item.message) for item in report.findings if item.severity != "info"]


def test_the_number_of_axes_that_documentation_gives() -> None:
    """Inputs are guessed with fewer axes where backward raises with as many as documented."""
    assert found_by_name(Doubled) == []
    ((severity, message),) = found_by_name(DoubledRows)
    assert severity == "warning"
    assert message.startswith("backward raises RuntimeError where `x` has shape [3, ")
    assert found_by_name(DoubledRowsOnly) == []
    assert found_by_name(DoubledMatrices) == []

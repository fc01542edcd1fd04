"""Whether broadcasting is meant: what is wrong where it is not is information."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint
from gradlint.experiments.layout.meant_broadcasting import (
    broadcasting_is_meant,
    is_said_or_handled,
    smaller_operands,
)
from gradlint.experiments.subject import Subject
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.load import from_object

Function = torch.autograd.Function


def unbroadcast(gradient: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    return gradient.sum_to_size(shape)


class Dice(Function):
    """Overlap of classes, averaged."""

    @staticmethod
    def forward(ctx, probs, other):
        ctx.save_for_backward(probs, other)
        return (probs * other).sum(0).mean()

    @staticmethod
    def backward(ctx, g):
        probs, other = ctx.saved_tensors
        return g * other.expand_as(probs) / other.shape[1], None


class DocumentedDice(Dice):
    """Overlap of probs (N, C) with the other, of the shape of probs."""


class SpokenDice(Dice):
    """Overlap of probs (N, C) with the other, which broadcasts."""


class DeniedDice(Dice):
    """Overlap of classes, averaged; there is no broadcasting."""


class Weighted(Dice):
    @staticmethod
    def forward(ctx, probs, weight):
        ctx.save_for_backward(probs, weight)
        return (probs * weight).sum(0).mean()


class Helped(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return unbroadcast(g * b, a.shape), g * a


class OneByOne(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        of_b = g * a
        if b.size(0) == 1:
            of_b = of_b.sum(0, keepdim=True)
        return g * b, of_b


class TwoForms(Function):
    """x (N, K) and other (N, K) or (K,)."""

    @staticmethod
    def forward(ctx, x, other):
        ctx.save_for_backward(other)
        return x * other

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


def subject(function: Any, *args: torch.Tensor) -> Subject:
    return Subject(from_object(function), Sample("given", "inferred", args), Settings())


def meant(function: Any, name: str, small: tuple[int, ...], grad: str) -> bool:
    """Whether the second tensor may be ``small`` where the sample has shape (3, 4)."""
    generator = torch.Generator().manual_seed(0)
    one = torch.rand(3, 4, generator=generator, dtype=torch.float64).requires_grad_()
    two = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    there = subject(function, one, two.requires_grad_(grad == "both"))
    sample = Sample("there", "inferred", (one, torch.rand(small, dtype=torch.float64)))
    assert smaller_operands(there.sample, sample, there) == [name]
    return broadcasting_is_meant(there, sample, [name])


@pytest.mark.parametrize(
    ("function", "name", "small", "grad", "expected"),
    [
        (Dice, "other", (3, 1), "first", False),
        (DocumentedDice, "other", (3, 1), "first", False),
        (DeniedDice, "other", (3, 1), "first", False),
        (SpokenDice, "other", (3, 1), "first", True),
        (Weighted, "weight", (3, 1), "first", True),
        (Helped, "b", (1, 4), "both", True),
        (OneByOne, "b", (1, 4), "both", True),
        (TwoForms, "other", (4,), "first", True),
        (TwoForms, "other", (3, 1), "first", False),
    ],
)
def test_signs_that_it_is_meant(
    function: Any, name: str, small: tuple[int, ...], grad: str, expected: bool
) -> None:
    assert meant(function, name, small, grad) == expected


def test_a_shape_that_is_summed_to_speaks_of_its_argument() -> None:
    found = subject(Helped, torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True))
    assert is_said_or_handled(found, ["a"])
    assert not is_said_or_handled(found, ["b"])


# The op of a module, beside a buffer and a parameter of its own.


class _Filtered(Function):
    @staticmethod
    def forward(ctx, image, mask):
        ctx.save_for_backward(mask)
        return mask * torch.fft.fft(image).real

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return torch.fft.fft(mask * g).real, None


class Filtered(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 0.5], dtype=torch.float64))

    def forward(self, image):
        return _Filtered.apply(image, self.mask)


class BroadcastFiltered(Filtered):
    """The image broadcasts against the mask."""


class Squeezed(Function):
    """Rows times a number each; wrong for a batch of one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sum(1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        right = g * x.sum(1, keepdim=True) + (g * x).sum(1, keepdim=True)
        return right * (2 if len(x) == 1 else 1)


def odd_sizes(thing: Any, *args: torch.Tensor) -> list[Finding]:
    report = gradlint.check(thing, [args], select=["GL706"], order=1, seed=0)
    return report.targets[0].findings


def image() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(3, 4, generator=generator, dtype=torch.float64).requires_grad_()


def test_inputs_that_broadcast_against_a_buffer_are_information() -> None:
    found = odd_sizes(Filtered(), image())
    assert [item.severity for item in found] == ["info"]
    assert "[3, 1]" in found[0].message
    assert "nothing says that it is meant" in found[0].evidence["info because"]


def test_that_it_is_meant_keeps_the_finding() -> None:
    assert [item.severity for item in odd_sizes(BroadcastFiltered(), image())] == ["error"]


def test_a_batch_of_one_is_no_broadcasting() -> None:
    found = odd_sizes(Squeezed, image())
    assert [item.severity for item in found] == ["error"]
    assert "[1, 4]" in found[0].message


# Guessed inputs: an operand that is made smaller.


def first_order(function: Any) -> list[Finding]:
    report = gradlint.check(function, seed=0, order=1, select=["GL1", "GL2", "GL4"])
    return [item for item in report.targets[0].findings if "broadcast" in item.message]


def test_a_other_that_broadcasts_by_accident_is_information() -> None:
    found = first_order(Dice)
    assert [item.severity for item in found] == ["info"]
    assert found[0].message == "wrong gradient for `probs` where `other` is broadcast along axis 1"


def test_a_other_of_which_broadcasting_is_said_is_not() -> None:
    assert [item.severity for item in first_order(SpokenDice)] == ["error"]


# Sizes and numbers of axes that the documentation gives.


class Points(Function):
    """Lengths of the points x (N, 3)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(-1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g[..., None] * x * (1 if x.shape[-1] == 3 and x.dim() == 2 else 2)


class AnyPoints(Points):
    """Lengths of the points x."""


def points() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 3, generator=generator, dtype=torch.float64).requires_grad_()


def test_a_documented_number_and_rank_are_kept() -> None:
    assert odd_sizes(Points, points()) == []
    assert [item.severity for item in odd_sizes(AnyPoints, points())] == ["error"]


class Smoothed(Function):
    """h₀ = start, hₜ = alpha hₜ₋₁ + xₜ₋₁ + omega: of numbers, or of several series at once."""

    @staticmethod
    def forward(ctx, x, omega, alpha, start):
        h = [start]
        for value in x[:-1]:
            h.append(alpha * h[-1] + value + omega)
        ctx.save_for_backward(alpha, torch.stack(h))
        return torch.stack(h)

    @staticmethod
    def backward(ctx, g):
        alpha, h = ctx.saved_tensors
        grad_omega = grad_alpha = torch.zeros_like(alpha)
        later, of_x = torch.zeros_like(g[0]), [torch.zeros_like(g[0])]
        for t in range(len(h) - 1, 0, -1):
            later = later + g[t]
            of_x.append(later)
            grad_omega = grad_omega + later
            grad_alpha = grad_alpha + later * h[t - 1]
            later = later * alpha
        return torch.stack(of_x[::-1]), grad_omega, grad_alpha, later + g[0]


class SqueezedBeside(Function):
    """x scale + bias, whose gradients lose the axis of a batch of one."""

    @staticmethod
    def forward(ctx, x, bias, scale):
        ctx.save_for_backward(x, scale)
        return x * scale + bias

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return (g * scale).squeeze(0), g, (g * x).sum()


def test_a_gradient_in_the_shape_of_what_guessed_inputs_broadcast_is_information() -> None:
    report = gradlint.check(Smoothed, select=["GL706"], seed=1, order=1)
    (finding,) = report.findings
    assert finding.severity == "info"
    assert finding.grounds.explained == "broadcast"
    assert "got [] but expected shape compatible with [4]" in finding.evidence["original"]


def test_an_axis_that_is_lost_is_not() -> None:
    report = gradlint.check(SqueezedBeside, select=["GL706"], seed=1, order=1)
    assert {item.severity for item in report.findings} & {"warning", "error"}
    assert all(item.grounds.explained is None for item in report.findings)


def test_given_inputs_that_broadcast_are_meant() -> None:
    def leaf(*shape: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(len(shape))
        return torch.rand(shape, generator=generator, dtype=torch.float64).requires_grad_()

    inputs = [(leaf(3, 4), leaf(4), leaf(), leaf(4))]
    (finding,) = gradlint.check(Smoothed, inputs, select=["GL706"], seed=1, order=1).findings
    assert finding.severity == "error"


class Transported(Function):
    """Sorted projections of as many points on both sides."""

    @staticmethod
    def forward(ctx, x, y, theta):
        ctx.save_for_backward(x, y, theta)
        return ((x @ theta.t()).sort(0).values - (y @ theta.t()).sort(0).values).square().mean()

    @staticmethod
    def backward(ctx, g):
        x, y, theta = ctx.saved_tensors
        (a, i), (b, j) = (x @ theta.t()).sort(0), (y @ theta.t()).sort(0)
        d = 2 * g * (a - b) / a.numel()
        by_a = torch.zeros_like(a).scatter(0, i, d)
        by_b = torch.zeros_like(b).scatter(0, j, -d)
        return by_a @ theta, by_b @ theta, by_a.t() @ x + by_b.t() @ y


class Spread(Function):
    """A product with a factor, for which backward has a sum of its own kind."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        return g * factor, torch.einsum("...,...->...", g, x)


def test_a_backward_without_a_sum_is_for_no_operand_that_broadcasts() -> None:
    report = gradlint.check(Transported, select=["GL401"], seed=1, order=1)
    assert {(f.severity, f.grounds.explained) for f in report.findings} == {("info", "broadcast")}


@pytest.mark.parametrize(("wrong", "expected"), [((), True), (("factor",), True), (("x",), False)])
def test_who_thinks_of_broadcasting_has_the_other_gradients_right(
    wrong: tuple[str, ...], expected: bool
) -> None:
    x = torch.ones(3, 4, requires_grad=True)
    before = subject(Spread, x, torch.ones(3, 4, requires_grad=True))
    small = Sample("small", "given", (x, torch.ones(1, 4, requires_grad=True)))
    assert broadcasting_is_meant(before, small, ["factor"], wrong) == expected


class Ratio(Function):
    """A loss of the ratios r, each weighted by an advantage."""

    @staticmethod
    def forward(ctx, logps, advantages):
        s = logps.sum(1).exp()
        ctx.save_for_backward(logps, advantages)
        return (s * advantages).mean()

    @staticmethod
    def backward(ctx, g):
        logps, advantages = ctx.saved_tensors
        s = logps.sum(1).exp()
        active = torch.where(advantages > 0, s < 1 + 1e9, s > 1 - 1e9)
        ds = g * s * advantages * active / advantages.numel()
        return ds[:, None].expand_as(logps), None


@pytest.mark.parametrize(("rows", "meant"), [(4, False), (3, True)])
def test_one_number_a_row_of_a_square_is_no_operand_that_broadcasts(rows: int, meant: bool) -> None:
    logps = torch.zeros(rows, 4, dtype=torch.float64).requires_grad_()
    sample = Sample("given", "given", (logps, torch.ones(4, dtype=torch.float64)), {})
    other = Sample("given", "given", (logps, torch.ones(1, dtype=torch.float64)), {})
    subject = Subject(from_object(Ratio), sample, Settings())
    assert broadcasting_is_meant(subject, other, ["advantages"]) is meant

"""GL701, GL702 and GL704: grad_output in other layouts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.baseline_comparison import make_baseline
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def rule(code: str):
    found = by_code(code)
    assert found is not None
    return found


def in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    steps = torch.empty(tensor.shape, device="meta").stride()
    return torch.as_strided(tensor, tensor.shape, steps, tensor.storage_offset())


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class InARow(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return in_a_row(grad_output) * x.cos()


class Views(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.view(-1) * x.cos().view(-1)).view(x.shape)


class FromTheStart(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.as_strided(grad_output, x.shape, grad_output.stride(), 0) * x.cos()


class InPlace(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.mul_(x.cos())


class Wrong(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


class WithSums(Function):
    """A second output, of no dimensions, and a softmax: ones cancel in its gradient."""

    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(x, y)
        return y, x.square().sum()

    @staticmethod
    def backward(ctx, grad_soft, grad_sum):
        x, y = ctx.saved_tensors
        soft = y * (grad_soft - (grad_soft * y).sum(-1, keepdim=True))
        return soft + 2 * x * grad_sum


def matrix(*shape: int) -> torch.Tensor:
    return torch.randn(*(shape or (3, 4)), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("code", ["GL701", "GL702", "GL704"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("op", [Sine, WithSums, Wrong])
def test_layout_makes_no_difference(
    probed: Callable[..., Outcome], code: str, dtype: torch.dtype, op: type
) -> None:
    outcome = probed(rule(code), op, matrix(), dtype=dtype)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_memory_read_in_a_row_is_named(probed: Callable[..., Outcome]) -> None:
    outcome = probed(rule("GL701"), InARow, matrix())
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.message == (
        "gradient for `x` is wrong where grad_output is transposed in memory, a slice of a wider "
        "buffer, or every second element of a buffer"
    )
    assert finding.cause_text.startswith("strides ignored: ")
    assert finding.excerpt is not None
    assert finding.excerpt.label == "returned for `x`"
    (row,) = finding.evidence["elements"]
    assert row["index"] == finding.index
    assert row["error"] > 0.1


def test_exceptions_are_one_finding(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(rule("GL701"), Views, matrix()).findings
    assert finding.message.startswith("backward raises RuntimeError where grad_output is transp")
    assert "view size is not compatible" in finding.cause_text
    assert finding.severity == "error"
    assert finding.location is not None
    assert finding.location.line == Views.backward.__code__.co_firstlineno + 3


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        flat = grad_output.reshape(-1, grad_output.shape[-1])
        return (flat @ weight.mT).view(x.shape), x.reshape(-1, x.shape[-1]).mT @ flat


class LinearViewed(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        flat = grad_output.view(-1, grad_output.shape[-1])
        return (flat @ weight.mT).view(x.shape), x.reshape(-1, x.shape[-1]).mT @ flat


class OfTwoAxes(LinearViewed):
    @staticmethod
    def forward(ctx, x, weight):
        assert x.dim() == 2
        ctx.save_for_backward(x, weight)
        return x @ weight


class WithoutBatches(LinearViewed):
    """Wrong for more than two axes, which is GL706's."""

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        flat = grad_output.view(-1, grad_output.shape[-1])
        return (flat @ weight.mT).view(x.shape), x.reshape(-1, x.shape[-1]).mT @ flat * x.dim() / 2


def test_a_view_that_fails_with_an_axis_more_is_found(probed: Callable[..., Outcome]) -> None:
    for op, arguments, shape in (
        (LinearViewed, (matrix(3, 4), matrix(4, 5)), "[7, 3, 4]"),
        (Views, (matrix(4),), "[3, 4]"),
    ):
        (finding,) = probed(rule("GL701"), op, *arguments).findings
        assert finding.message == (
            "backward raises RuntimeError where grad_output is transposed in memory and `x` has "
            f"shape {shape}"
        )
        assert finding.excerpt is not None


class Projected(Function):
    """points (..., 3), matrix (3, 2)."""

    @staticmethod
    def forward(ctx, points, matrix):
        ctx.save_for_backward(points, matrix)
        return points @ matrix

    @staticmethod
    def backward(ctx, grad_output):
        points, matrix = ctx.saved_tensors
        flat = grad_output.view(-1, matrix.shape[1])
        return (flat @ matrix.mT).view(points.shape), points.reshape(-1, 3).mT @ flat


class ProjectedAsIs(Projected):
    @staticmethod
    def backward(ctx, grad_output):
        points, matrix = ctx.saved_tensors
        flat = grad_output.reshape(-1, matrix.shape[1])
        return (flat @ matrix.mT).view(points.shape), points.reshape(-1, 3).mT @ flat


class DoubledInPlace(Function):
    """Backward doubles rows of a clone, which keeps the strides of grad_output."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output.clone()
        grad.reshape(-1, grad.shape[-1]).mul_(2)
        return grad


class DoubledRows(DoubledInPlace):
    @staticmethod
    def backward(ctx, grad_output):
        return DoubledInPlace.backward(ctx, grad_output.contiguous())


class OfRows(Projected):
    """Takes no more axes, for which its view would fail."""

    @staticmethod
    def forward(ctx, points, matrix):
        assert points.dim() == 2
        ctx.save_for_backward(points, matrix)
        return points @ matrix


def test_an_axis_more_of_the_only_tensor_that_may_have_it(probed: Callable[..., Outcome]) -> None:
    """Both have three rows, by chance, so that all that share the first axis are refused."""
    (finding,) = probed(rule("GL701"), Projected, matrix(3, 3), matrix(3, 2)).findings
    assert finding.message == (
        "backward raises RuntimeError where grad_output is transposed in memory and `points` has "
        "shape [5, 3, 3]"
    )
    for op in (ProjectedAsIs, OfRows):
        assert probed(rule("GL701"), op, matrix(3, 3), matrix(3, 2)).verdict == "pass"


def test_what_is_wrong_with_an_axis_more_alone(probed: Callable[..., Outcome]) -> None:
    """Rows of two axes can be viewed whatever their strides are; of three, they are copied."""
    (finding,) = probed(rule("GL701"), DoubledInPlace, matrix(3, 4)).findings
    assert finding.message == (
        "gradient for `x` is wrong where grad_output is transposed in memory and `x` has shape "
        "[5, 3, 4]"
    )
    assert probed(rule("GL701"), DoubledRows, matrix(3, 4)).verdict == "pass"


@pytest.mark.parametrize("op", [Linear, OfTwoAxes, WithoutBatches])
def test_no_view_fails_with_an_axis_more(probed: Callable[..., Outcome], op: type) -> None:
    outcome = probed(rule("GL701"), op, matrix(3, 4), matrix(4, 5))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


def test_channels_last(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(rule("GL701"), InARow, matrix(2, 3, 4, 5)).findings
    assert finding.message.endswith(", or channels_last")


def test_expanded_gradient_written_to(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(rule("GL702"), InPlace, matrix()).findings
    assert finding.message == (
        "backward raises RuntimeError where grad_output is expanded (stride 0)"
    )


def test_expanded_gradient_read_on(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(rule("GL702"), InARow, matrix()).findings
    assert finding.message == (
        "gradient for `x` is not finite where grad_output is expanded (stride 0)"
    )


def test_storage_offset(probed: Callable[..., Outcome]) -> None:
    assert probed(rule("GL701"), FromTheStart, matrix()).verdict == "fail"  # a slice starts later
    (finding,) = probed(rule("GL704"), FromTheStart, matrix()).findings
    assert finding.message == (
        "gradient for `x` is not finite where grad_output is contiguous at storage offset 1"
    )


@pytest.mark.parametrize("code", ["GL701", "GL702"])
def test_scalars_have_one_layout(probed: Callable[..., Outcome], code: str) -> None:
    outcome = probed(rule(code), lambda x: x.square().sum(), matrix())
    assert outcome.verdict == "skipped"
    assert outcome.note.startswith("grad_output has one element")


@pytest.mark.parametrize("code", ["GL701", "GL702", "GL703", "GL704", "GL705", "GL706", "GL707"])
def test_what_raises_is_told_elsewhere(probed: Callable[..., Outcome], code: str) -> None:
    class Raises(Sine):
        @staticmethod
        def backward(ctx, grad_output):
            raise ValueError

    class Lost(Sine):
        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * torch.nan

    outcome = probed(rule(code), Raises, matrix())
    assert (outcome.verdict, outcome.note) == ("skipped", "backward raised: see GL004")
    outcome = probed(rule(code), Lost, matrix())
    assert (outcome.verdict, outcome.note) == ("skipped", "no gradient is finite: see GL302")


def test_three_rules_take_one_forward(subject: Callable[..., Subject]) -> None:
    bound = subject(Sine, matrix(2, 3, 4))  # of so many axes that none more is tried
    assert bound.once(make_baseline) is not None
    before = bound.problem.forward_calls, bound.problem.backward_calls
    for code in ("GL701", "GL702"):
        assert rule(code).probe(bound).verdict == "pass"
    problem = bound.problem
    assert (problem.forward_calls - before[0], problem.backward_calls - before[1]) == (1, 5)

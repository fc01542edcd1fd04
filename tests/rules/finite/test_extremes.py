"""GL301, GL302 and GL303 at values that the sample does not have."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.checking.severity import decided
from gradlint.experiments.finite.extremes import bounds_of, make_extremes, ranges_of
from gradlint.experiments.finite.nonfinite_gradients import NO_DIGITS, _together_then_alone
from gradlint.experiments.finite.overflow import FIXED_DTYPE
from gradlint.experiments.finite.special_values import (
    large,
    saturated,
    single,
    ties,
    tiny,
    zeros,
)
from gradlint.experiments.finite.value_ranges import ValueRange, range_of, within
from gradlint.experiments.subject import Subject
from gradlint.inputs.documentation import Range
from gradlint.model.rule import Outcome, Rule
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import by_code
from gradlint.targets.build import from_object

GL301, GL302, GL303 = by_code("GL301"), by_code("GL302"), by_code("GL303")

X = torch.tensor([[0.7, -1.3, 2.1, 0.4], [-0.2, 1.6, -2.4, 0.9], [1.1, -0.6, 0.3, -1.8]])
ANY = range_of("all reals", X)


def formula(forward: Callable[..., Tensor], slope: Callable[..., Tensor]) -> Any:
    """y = forward(x) element by element, with dy/dx = slope(x)."""

    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            return g * slope(x)

    return Op


def in_domain(op: Any, domain: str, x: Tensor) -> Subject:
    sample = Sample("s", "inferred", (x.double().requires_grad_(),), domains={"x": domain})
    return Subject(from_object(op), sample, Settings(seed=1))


# -- the values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "holds", "refuses"),
    [
        ("all reals", (0.0, 1e4, -1e4), ()),
        ("nonzero", (1e4, -1.0), (0.0,)),
        ("positive", (1e-30, 1e4), (0.0, -1.0)),
        ("nonnegative", (0.0, 2.0), (-1.0,)),
        ("negative", (-1e4,), (0.0, 1.0)),
        ("between 0 and 1", (0.5,), (0.0, 1.0, 2.0)),
        ("above 1", (2.0,), (0.0, 1.0)),
        ("rows sum to 1", (), (0.0, 0.5)),
        ("in [2, 3)", (), (0.0, 2.5)),
        ("symmetric positive definite", (), (0.0, 1.0)),
    ],
)
def test_domains_are_respected(
    words: str, holds: tuple[float, ...], refuses: tuple[float, ...]
) -> None:
    found = range_of(words, X)
    assert [value for value in holds if not found.holds(value)] == []
    assert [value for value in refuses if found.holds(value)] == []


def test_a_positive_sample_stays_positive_where_nothing_is_known() -> None:
    found = range_of("", X.abs())
    assert found.holds(1e4)
    assert found.holds(0.0)
    assert not found.holds(-1.0)


def test_a_triangular_matrix_stays_one() -> None:
    square = X[:, :3]
    for triangular in (square.tril(), square.triu(), square.expand(2, 3, 3).tril()):
        found = range_of("", triangular)
        assert ties([triangular], [found]) is None
        assert large([triangular], [found]) is None
    for other in (square, torch.zeros(3, 3), X.tril(), X[:1, :1]):
        assert range_of("", other).holds(1e3)


def test_special_values() -> None:
    assert zeros([X], [ANY])[0].eq(0).all()
    (equal,) = ties([X], [ANY])
    assert equal.unique().numel() == 1
    (huge,) = large([X.double()], [ANY])
    assert huge.sign().equal(-X.double().sign())
    assert large([X.abs()], [ANY])[0].gt(0).all()
    assert huge.abs().max() == pytest.approx(1e4)
    assert huge.abs().min() > 10
    (small,) = tiny([X], [ANY])
    assert 0 < small.abs().max() < 1e-36
    assert small.sign().equal(X.sign())
    rows = X.abs() / X.abs().sum(-1, keepdim=True)
    (uniform,) = ties([rows], [range_of("rows sum to 1", rows)])
    assert uniform.eq(0.25).all()
    assert zeros([rows], [range_of("rows sum to 1", rows)]) is None
    assert large([rows], [range_of("rows sum to 1", rows)]) is None


def test_integers_and_zeros_that_are_there_change_nothing() -> None:
    assert zeros([torch.arange(3)], [ANY]) is None
    assert zeros([torch.zeros(3)], [ANY]) is None
    assert ties([torch.ones(1)], [ANY]) is None


def test_single_special_elements() -> None:
    (values,), places = single([X], [ANY], [2.5, -2.5])
    assert [place.words for place in places] == [
        "equals another element",
        "is 0",
        "is 2.5",
        "is -2.5",
    ]
    flat = values.flatten()
    assert [float(flat[place.element]) for place in places[1:]] == [0.0, 2.5, -2.5]
    assert flat[places[0].element] == flat[places[0].twin]
    assert int((values != X).sum()) == 4


def test_special_elements_of_two_inputs_lie_apart() -> None:
    _, places = single([X, X.flip(0)], [ANY, ANY], [])
    zeros_at = [place.element for place in places if place.value == 0.0]
    assert len(set(zeros_at)) == len(zeros_at) == 2


def test_bounds_come_from_arguments_and_source(subject: Callable[..., Subject]) -> None:
    def op(x: Tensor, bound: float) -> Tensor:
        return torch.where(x > 3.25, 0.0, x.clamp(-bound, bound))

    assert set(bounds_of(subject(op, X, 0.8))) >= {0.8, -0.8, 3.25, -3.25, 1.0}


# -- GL301 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("op", "x", "limit"),
    [
        (lambda x: x * x.log(), X.abs(), 0.0),
        (lambda x: x.sin() / x, X, 1.0),
        (lambda x: x.square() / x.abs(), X, 0.0),
        (lambda x: x.expm1() / x, X, 1.0),
        (lambda x: (x / x.abs()) * x, X, 0.0),
        (lambda x: torch.log1p(x - 1).div(x - 1), X.abs() + 0.15, 1.0),
    ],
)
def test_a_hole_that_has_a_limit(
    probed: Callable[..., Outcome], op: Any, x: Tensor, limit: float, dtype: torch.dtype
) -> None:
    (finding,) = probed(GL301, op, x, dtype=dtype).findings
    assert finding.severity == "warning"
    assert finding.evidence["limit"] == pytest.approx(limit, abs=0.02)
    assert "tends to" in finding.message


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x / x.abs(),
        torch.log,
        lambda x: x / torch.linalg.vector_norm(x),
        lambda x: (1 / x).sin() * x / x,
        torch.sqrt,
        lambda x: torch.xlogy(x, x),
        torch.sinc,
    ],
)
def test_holes_without_a_limit_pass(probed: Callable[..., Outcome], op: Any) -> None:
    assert probed(GL301, op, X).findings == [] or not bool(op(X.double()).isfinite().all())


def centred(x: Tensor, mask: Tensor) -> Tensor:
    """Infinite where an element is zero, and NaN at the masked ones of its row."""
    logs = torch.where(mask, x, torch.ones_like(x)).log()
    return (logs - logs.sum(-1, keepdim=True)) * mask


def centred_but_last(x: Tensor, mask: Tensor) -> Tensor:
    """The same but for the sum: NaN where the limit is zero, and infinite nowhere."""
    return torch.where(mask, x * x.log(), torch.zeros_like(x))


@pytest.mark.parametrize(("op", "found"), [(centred, 0), (centred_but_last, 1)])
def test_what_is_nan_beside_a_pole_is_no_hole(
    probed: Callable[..., Outcome], op: Any, found: int
) -> None:
    mask = torch.tensor([True, True, True, False])
    assert len(probed(GL301, op, X.abs().reshape(-1)[:4].reshape(1, 4), mask).findings) == found


@pytest.mark.parametrize("op", [torch.fmod, torch.remainder, torch.div, torch.pow, torch.atan2])
def test_two_inputs_that_vanish_together_are_no_hole(
    probed: Callable[..., Outcome], op: Any
) -> None:
    assert probed(GL301, op, X.abs(), X.abs().flip(0)).findings == []


def saturating(x: Tensor, half: Tensor) -> Tensor:
    return x / (half + x)


def test_a_zero_that_was_given_beside_one_that_is_tried(probed: Callable[..., Outcome]) -> None:
    """0 / 0 tends to zero along one input, and to one along the other."""
    doses = torch.tensor([0.0, 0.5, 2.0])
    half = torch.tensor([1.2, 0.7, 0.9])
    op = functools.partial(saturating, doses)
    assert probed(GL301, op, half).findings == []


def test_a_domain_without_zero_is_left_alone() -> None:
    def op(x: Tensor) -> Tensor:
        return x * x.log()

    assert GL301.probe(in_domain(op, "positive", X.abs())).findings == []
    assert len(GL301.probe(in_domain(op, "nonnegative", X.abs())).findings) == 1


# -- GL302 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("forward", "slope", "words"),
    [
        (torch.square, lambda x: 2 * x * x / x, "zero"),
        (lambda x: x.sigmoid(), lambda x: x.exp() / (1 + x.exp()) ** 2, "magnitudes"),
        (
            lambda x: torch.logaddexp(x, torch.zeros_like(x)),
            lambda x: x.exp() / (1 + x.exp()),
            "magnitudes",
        ),
        (lambda x: (x - 1) ** 2, lambda x: 2 * (x - 1) ** 2 / (x - 1), "is 1"),
    ],
)
def test_nan_at_extremes(
    probed: Callable[..., Outcome], forward: Any, slope: Any, words: str, dtype: torch.dtype
) -> None:
    outcome = probed(GL302, formula(forward, slope), X, dtype=dtype)
    (finding,) = outcome.findings
    assert outcome.verdict == "fail"
    assert finding.severity == "error"
    assert words in finding.message
    (element,) = finding.evidence["elements"]
    assert not math.isfinite(element["returned"])
    assert math.isfinite(element["measured"])


def test_kinks_are_warnings(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(GL302, lambda x: x.square().sum(-1).sqrt(), X).findings
    assert finding.severity == "warning"
    assert "every element is zero" in finding.message


def test_the_smallest_numbers_are_information(probed: Callable[..., Outcome]) -> None:
    op = formula(lambda x: x.abs(), lambda x: x / x.square().sqrt().clamp(min=0))
    found = probed(GL302, op, X).findings
    assert {finding.severity for finding in found} <= {"info", "warning"}


@pytest.mark.parametrize(
    "op",
    [
        torch.sqrt,
        torch.acos,
        torch.log,
        torch.exp,
        lambda x: x.abs() ** 0.5,
        lambda x: torch.linalg.vector_norm(x, dim=-1),
        lambda x: torch.linalg.qr(x).Q,
        lambda x: torch.linalg.svd(x, full_matrices=False).U,
        lambda x: x.std(-1),
        lambda x: x.softmax(-1),
        lambda x: x.logsumexp(-1),
        lambda x: x.prod(-1),
        lambda x: x / (1e-6 + x.norm()),
        torch.nn.functional.softplus,
        torch.nn.functional.gelu,
    ],
)
def test_right_ops_are_silent_at_extremes(probed: Callable[..., Outcome], op: Any) -> None:
    outcome = probed(GL302, op, X.abs() * 0.4)
    assert [f.message for f in outcome.findings if f.severity != "info"] == []


def test_xlogy_of_zeros_has_no_derivative_to_miss(probed: Callable[..., Outcome]) -> None:
    assert probed(GL302, torch.xlogy, X.abs(), X.abs().flip(0)).findings == []


class BestOfRankOne(Function):
    """The matrix of rank one that is nearest to x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        u, s, vh = torch.linalg.svd(x)
        ctx.save_for_backward(u, s, vh)
        return s[0] * torch.outer(u[:, 0], vh[0])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        u, s, vh = ctx.saved_tensors
        inner = u.T @ g @ vh.T
        out = torch.zeros_like(inner)
        out[0, 0] = inner[0, 0]
        rest = torch.cat((s[1:], s.new_zeros(len(vh) - len(s))))
        row, column = inner[0, 1:], torch.zeros_like(rest)
        column[: len(u) - 1] = inner[1:, 0]
        gap = s[0] ** 2 - rest**2
        out[0, 1:] = s[0] * (s[0] * row + rest * column) / gap
        out[1:, 0] = (s[0] * (s[0] * column + rest * row) / gap)[: len(u) - 1]
        return u @ out @ vh


def test_what_is_smooth_along_lines_alone_has_no_derivative_to_miss(
    probed: Callable[..., Outcome],
) -> None:
    assert probed(GL302, BestOfRankOne, X).findings == []


def test_what_is_linear_at_zeros_has_one(probed: Callable[..., Outcome]) -> None:
    def forward(x: Tensor) -> Tensor:
        return x * (1 + x.square().sum())

    class Op(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            (x,) = ctx.saved_tensors
            length = x.norm()
            unit = x / length
            return g * (1 + length**2) + 2 * length**2 * (g * unit).sum() * unit

    (finding,) = probed(GL302, Op, X).findings
    assert finding.severity == "error"
    assert "every element is zero" in finding.message


def test_masked_rows_are_tried(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor, mask: Tensor) -> Tensor:
        count = mask.sum(-1, keepdim=True)
        mean = (x * mask).sum(-1, keepdim=True) / count.clamp(min=1)
        return torch.where(count > 0, mean / count.sqrt() * count.sqrt(), 0 * mean)

    mask = X > 0
    (finding,) = probed(GL302, op, X, mask).findings
    assert "boolean argument is all False" in finding.message


def test_slow_ops_are_left_out(subject: Callable[..., Subject]) -> None:
    import time

    def op(x: Tensor) -> Tensor:
        time.sleep(0.02)
        return x.sin()

    slow = subject(op, X, timeout=0.5)
    assert "would take too long" in slow.once(make_extremes).reason


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_too_few_digits_at_large_values_are_no_fault(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    """exp of nothing but the rounding of large numbers."""
    op = formula(lambda x: x.clone(), lambda x: (400 * (x * 1.001 - x - 0.001 * x).abs()).exp())
    outcome = probed(GL302, op, X, dtype=dtype)
    assert outcome.findings == []
    assert (NO_DIGITS in outcome.note) == (dtype != torch.float32)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_range_too_small_at_large_values_is_a_fault(
    probed: Callable[..., Outcome], dtype: torch.dtype
) -> None:
    op = formula(torch.nn.functional.softplus, lambda x: x.exp() / (1 + x.exp()))
    (finding,) = probed(GL302, op, X, dtype=dtype).findings
    largest = 1000 if dtype in (torch.float32, torch.float16) else 10000
    assert f"at magnitudes from 10 to {largest}" in finding.message


class Turning(Function):
    """The mean of log I0(k) - k cos(t - m), of which the ratio of Bessel functions is the slope:
    where angles are large, too, it turns so often that no slope can be measured."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, m: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(t, m, k)
        return (torch.log(torch.special.i0e(k)) + k - k * (t - m).cos()).mean()

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        t, m, k = ctx.saved_tensors
        of_k = (cls.ratio(k) - (t - m).cos()).mean().reshape(k.shape)
        of_t = g * k * (t - m).sin() / t.numel()
        return of_t, -of_t.sum().reshape(m.shape), g * of_k

    @staticmethod
    def ratio(k: Tensor) -> Tensor:
        return torch.special.i1e(k) / torch.special.i0e(k)


class TurningFast(Turning):
    @staticmethod
    def ratio(k: Tensor) -> Tensor:
        return torch.special.i1(k) / torch.special.i0(k)


class Falling(Function):
    """exp(k - t) turned by t: where k alone is large, forward overflows itself."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(t, k)
        return ((k - t).exp() * t.cos()).sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        t, k = ctx.saved_tensors
        each = k.exp() / t.exp()
        return -g * each * (t.cos() + t.sin()), g * (each * t.cos()).sum().reshape(k.shape)


@pytest.mark.parametrize("t", [torch.tensor(0.08), X, X[0]])
def test_an_input_that_is_large_alone(probed: Callable[..., Outcome], t: Tensor) -> None:
    m, k = torch.tensor(0.3), torch.tensor(1.3)
    assert probed(GL302, Turning, t, m, k).findings == []
    (finding,) = probed(GL302, TurningFast, t, m, k).findings
    assert (finding.input, finding.grounds.where) == ("k", "extreme")
    assert math.isfinite(finding.evidence["elements"][0]["measured"])


def test_the_other_inputs_keep_their_values() -> None:
    values = tuple(v.double().requires_grad_() for v in (X, torch.tensor(0.3), torch.tensor(1.3)))
    large_values = []
    for op, count in ((TurningFast, 2), (Turning, 1)):
        subject = Subject(from_object(op), Sample("s", "given", values), Settings(seed=1))
        extreme = subject.once(make_extremes).named("large")
        assert extreme is not None
        points = list(_together_then_alone(subject, extreme))
        assert len(points) == count
        large_values += [point.make() for point in points]
    together, alone = large_values[:2]
    assert float(together[1]) == pytest.approx(1e4)
    assert [torch.equal(a, b.detach()) for a, b in zip(alone, values, strict=True)] == [
        True,
        True,
        False,
    ]
    assert float(alone[2]) == pytest.approx(1e4)


def test_a_function_that_overflows_where_an_input_is_large_alone(
    probed: Callable[..., Outcome],
) -> None:
    assert probed(GL302, Falling, X.abs(), torch.tensor(1.3)).findings == []


# -- GL303 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.exp() / x.exp().sum(-1, keepdim=True),
        lambda x: x.exp().sum(-1).log(),
        lambda x: (1 + x.exp()).log(),
        lambda x: x.softmax(-1).log(),
        lambda x: x.pow(21) / x.pow(20),
    ],
)
def test_overflow_of_an_intermediate(
    probed: Callable[..., Outcome], op: Any, dtype: torch.dtype
) -> None:
    outcome = probed(GL303, op, X, dtype=dtype)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity) == ("fail", "warning")
    (element,) = finding.evidence["elements"]
    assert not math.isfinite(element["returned"])
    assert abs(element["float64"]) <= 300
    name = "float32" if dtype == torch.float64 else str(dtype).removeprefix("torch.")
    assert f"in {name}" in finding.message


class Logarithm(Function):
    """log x by Halley's iteration, which goes astray below zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        w = torch.zeros_like(x)
        for _ in range(50):
            w = w + 2 * (x - w.exp()) / (x + w.exp())
        ctx.save_for_backward(x)
        return w

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g / x


class Wells(Function):
    """Weights exp(−x²) of a row: steep, overflowing, and as steep as backward says."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = (-x.square() / 32).exp()
        y = y / y.sum(-1, keepdim=True)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return -x / 16 * y * (g - (g * y).sum(-1, keepdim=True))


class WrongSoftmax(Function):
    """Overflows, and its gradient is wrong by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp() / x.exp().sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return 3 * y * (g - (g * y).sum(-1, keepdim=True))


def test_an_iteration_that_goes_astray_is_no_overflow(probed: Callable[..., Outcome]) -> None:
    x = torch.tensor([-0.15, 0.3, 0.2, 0.7])
    far = saturated(x, 20.0, 150.0)
    astray = Logarithm.forward(SimpleNamespace(save_for_backward=lambda *_: None), far)
    assert bool(astray.isnan().any())
    assert probed(GL303, Logarithm, x).findings == []


def test_steep_functions_and_wrong_gradients_do_overflow(probed: Callable[..., Outcome]) -> None:
    (finding,) = probed(GL303, Wells, torch.tensor([[0.5, 0.6, -0.8], [1.5, 0.9, 1.2]])).findings
    assert "is NaN in float32" in finding.message
    (finding,) = probed(GL303, WrongSoftmax, X).findings
    assert "is NaN in float32" in finding.message


def test_squares_in_float16(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        return x / x.square().sum(-1, keepdim=True).sqrt() * 3

    (finding,) = probed(GL303, lambda x: x.square().sum(-1).sqrt(), X, dtype=torch.float16).findings
    assert "float16" in finding.message
    assert probed(GL303, op, X, dtype=torch.float32).findings == []


@pytest.mark.parametrize(("power", "found"), [(6, 1), (12, 0)])
def test_values_whose_square_overflows_may_overflow(
    power: int, found: int, probed: Callable[..., Outcome]
) -> None:
    """150¹⁹ is no float32; 150⁶ and its square are, of 150¹² only the value itself."""
    outcome = probed(GL303, lambda x: x.abs() ** 19 / x.abs() ** (19 - power), X)
    assert len(outcome.findings) == found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "op",
    [
        torch.exp,
        torch.sinh,
        lambda x: x.exp() ** 2,
        lambda x: x.softmax(-1),
        lambda x: x.log_softmax(-1),
        lambda x: x.logsumexp(-1),
        torch.tanh,
        torch.nn.functional.softplus,
        torch.acos,
        torch.log,
        lambda x: x.clamp(-3, 3).exp(),
    ],
)
def test_honest_overflow_is_no_finding(
    probed: Callable[..., Outcome], op: Any, dtype: torch.dtype
) -> None:
    assert probed(GL303, op, X.abs() * 0.4, dtype=dtype).findings == []


class Recurrence(Function):
    """h ← exp(d)·h + x, two steps: it grows with every step."""

    @staticmethod
    def forward(ctx: Any, d: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(d, x)
        first = d.exp() * torch.zeros_like(x) + x
        return torch.stack([first, d.exp() * first + x])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        d, x = ctx.saved_tensors
        return g[1] * d.exp() * x, g[0] + g[1] * (1 + d.exp())


def test_inputs_at_which_other_elements_overflow_are_too_large_for_the_op(
    probed: Callable[..., Outcome],
) -> None:
    assert probed(GL303, Recurrence, X, X.flip(0), dtype=torch.float32).findings == []
    # Only the element that is NaN: nothing says that such inputs are not meant.
    found = probed(GL303, lambda d, x: Recurrence.apply(d, x)[0], X, X.flip(0), dtype=torch.float32)
    assert [finding.input for finding in found.findings] == ["d"]


def test_without_float64_nan_tells(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            raise TypeError("float32 only")
        return x.exp() / x.exp().sum(-1, keepdim=True)

    (finding,) = probed(GL303, op, X, dtype=torch.float32).findings
    assert "finite at smaller values" in finding.message

    def honest(x: Tensor) -> Tensor:
        if x.dtype == torch.float64:
            raise TypeError("float32 only")
        return x.exp()

    assert probed(GL303, honest, X, dtype=torch.float32).findings == []


def test_an_op_that_refuses_float32_is_skipped(probed: Callable[..., Outcome]) -> None:
    def op(x: Tensor) -> Tensor:
        if x.dtype == torch.float32:
            raise TypeError("float64 only")
        return x.exp().sum().log()

    outcome = probed(GL303, op, X)
    assert (outcome.verdict, outcome.note) == ("skipped", "the op refuses float32")


# -- divisions by an input, and signs of guessed inputs -------------------------------------------


class Snake(Function):
    """x + sin²(a·x) / a with one a for each column: 0 / 0 at a = 0, which no author passes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor) -> Tensor:
        ctx.save_for_backward(x, a)
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, a = ctx.saved_tensors
        double = torch.sin(2 * a * x)
        slope_a = double * x / a - torch.sin(a * x) ** 2 / a**2
        return g * (1 + double), (g * slope_a).sum(0)


A_ROW = torch.tensor([0.5, 1.2, -0.8, 0.9])


def loudness(outcome: Outcome) -> dict[str, tuple[str, str | None]]:
    """Input or output → the severity that is decided on, and what explains the finding."""
    return {
        item.input or item.output or "": (
            decided(item.severity, item.grounds)[0],
            item.grounds.explained,
        )
        for item in outcome.findings
    }


def test_a_hole_at_a_zero_that_everything_is_divided_by_is_information(
    probed: Callable[..., Outcome],
) -> None:
    assert loudness(probed(GL301, Snake, X, A_ROW)) == {"output": ("info", "divisor")}
    # As many quotients as elements: the input is data, as in sin(x) / x.
    sinc = formula(lambda x: x.sin() / x, lambda x: x.cos() / x - x.sin() / x**2)
    assert loudness(probed(GL301, sinc, X)) == {"output": ("warning", None)}


class Radial(Function):
    """sin(k·r) / r for k = 1 … 3 up to a cutoff, which guards no zero."""

    @staticmethod
    def forward(ctx: Any, r: Tensor) -> Tensor:
        ctx.save_for_backward(r)
        k = torch.arange(1.0, 4.0, dtype=r.dtype)
        return torch.sin(k * r[..., None]) / r[..., None] * (r[..., None] < 5.0)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (r,) = ctx.saved_tensors
        k = torch.arange(1.0, 4.0, dtype=r.dtype)
        r = r[..., None]
        return (g * (k * torch.cos(k * r) - torch.sin(k * r) / r) / r * (r < 5.0)).sum(-1)


class Gain(Function):
    """Each price over the lowest one before it: 0 / 0 at a price of zero."""

    @staticmethod
    def forward(ctx: Any, price: Tensor) -> Tensor:
        low, at = price.cummin(0)
        ctx.save_for_backward(price, low, at)
        return price / low

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        price, low, at = ctx.saved_tensors
        return (g / low).scatter_add(0, at, -g * price / low**2)


def test_cutoffs_and_running_extremes_do_not_make_zero_an_argument(
    probed: Callable[..., Outcome],
) -> None:
    assert loudness(probed(GL301, Radial, X)) == {"output": ("info", "divisor")}
    assert loudness(probed(GL301, Gain, X[:1].abs())) == {"output": ("info", "divisor")}


def test_a_division_by_an_input_given_with_one_sign_is_information(
    probed: Callable[..., Outcome],
) -> None:
    sinc = formula(lambda x: x.sin() / x, lambda x: x.cos() / x - x.sin() / x**2)
    entropy = formula(lambda x: x * x.log(), lambda x: x.log() + 1)
    assert loudness(probed(GL301, sinc, X.abs())) == {"output": ("info", "divisor")}
    assert loudness(probed(GL301, sinc, -X.abs())) == {"output": ("info", "divisor")}
    assert loudness(probed(GL301, sinc, X)) == {"output": ("warning", None)}
    # A logarithm is no division: 0 · log 0 of a probability does occur.
    assert loudness(probed(GL301, entropy, X.abs())) == {"output": ("warning", None)}


class GuardedSinc(Function):
    """sin(x) / x with its limit at zero in forward; backward divides by zero there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), x.sin() / torch.where(x == 0, 1.0, x))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * (x.cos() / x - x.sin() / x**2)


def test_at_guessed_inputs_only_what_forward_is_finite_at_is_loud() -> None:
    sinc = formula(lambda x: x.sin() / x, lambda x: x.cos() / x - x.sin() / x**2)

    def told(rule: Rule, op: Any, origin: Any) -> dict[str, tuple[str, str | None]]:
        sample = Sample("s", origin, (X.double().requires_grad_(),))
        assert rule.probe is not None
        return loudness(rule.probe(Subject(from_object(op), sample, Settings(seed=1))))

    assert told(GL301, sinc, "inferred") == {"output": ("info", "undefined")}
    assert told(GL301, sinc, "--inputs") == {"output": ("warning", None)}
    assert told(GL302, GuardedSinc, "inferred")["x"][0] == "warning"


class Decay(Function):
    """y = s·exp(−t / h): 0 at h = 0, where backward divides zero by zero."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, h: Tensor) -> Tensor:
        t = torch.arange(1.0, 5.0, dtype=s.dtype)
        ctx.save_for_backward(s, h, t)
        return s * torch.exp(-t / h)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        s, h, t = ctx.saved_tensors
        decay = torch.exp(-t / h)
        return g * decay, (g * s * decay * t / h**2).sum(0)


class FaultyDecay(Decay):
    """The same, and a fault of backward's own at s = 0."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        s, h, t = ctx.saved_tensors
        y = s * torch.exp(-t / h)
        return g * y / s, (g * y * t / h**2).sum(0)


def test_gradients_at_a_zero_that_forward_divides_by_are_information(
    probed: Callable[..., Outcome],
) -> None:
    half_life = A_ROW.abs()
    found = loudness(probed(GL302, Decay, X, half_life))
    assert found == {"h": ("info", "divisor")}
    # The fault of backward's own at s = 0 shows with the sample's half-lives too.
    faulty = loudness(probed(GL302, FaultyDecay, X, half_life))
    assert faulty["s"][0] in ("warning", "error")
    assert faulty["h"] == ("info", "divisor")


class Guarded(Function):
    """1 / x where x is not zero, else zero: zero is meant, and backward misses it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.zeros_like(x), x * x / x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x / x


def test_a_zero_that_forward_looks_for_is_meant(probed: Callable[..., Outcome]) -> None:
    assert loudness(probed(GL302, Guarded, X))["x"][1] is None


class ClippedRatio(Function):
    """min(exp(x), 1), whose exp overflows at 10000: autograd has 0 · inf there too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ratio = x.exp()
        ctx.save_for_backward(ratio)
        return ratio.clamp(max=1.0)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (ratio,) = ctx.saved_tensors
        return g * (ratio <= 1.0) * ratio


class StableSigmoid(Function):
    """Forward is a sigmoid that never overflows, and backward one that does."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.exp() / (1 + x.exp()) ** 2


class RootOfSquares(Function):
    """The length of a vector, by a root that has no derivative at zero; so has the formula."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.square().sum(-1).sqrt()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g.unsqueeze(-1) * x / x.square().sum(-1, keepdim=True).sqrt()


class Length(RootOfSquares):
    """The same by ``norm``, of which autograd gives zero at zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.norm(dim=-1)


@pytest.mark.parametrize(
    ("op", "explained"),
    [
        (ClippedRatio, "singular"),
        (StableSigmoid, None),
        (RootOfSquares, "singular"),
        (Length, None),
    ],
)
def test_what_autograd_has_not_finite_either_is_information(
    probed: Callable[..., Outcome], op: type, explained: str | None
) -> None:
    found = loudness(probed(GL302, op, X))["x"]
    assert found[1] == explained
    assert (found[0] == "info") == (explained is not None)


class Applied(torch.nn.Module):
    """A Function inside: the second opinion is that of its forward, too."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return 2 * self.function.apply(x)


def mean_length(x: Tensor) -> Tensor:
    return RootOfSquares.apply(x).mean()


bound_early = StableSigmoid.apply


def sigmoid_bound_early(x: Tensor) -> Tensor:
    """Its Function is called by another name, so that there is no second opinion."""
    return bound_early(x)


@pytest.mark.parametrize(
    ("op", "explained"),
    [
        (Applied(ClippedRatio), "singular"),
        (Applied(StableSigmoid), None),
        (Applied(Length), None),
        (mean_length, "singular"),
        (sigmoid_bound_early, None),
    ],
)
def test_functions_inside_are_compared_with_autograd_too(
    probed: Callable[..., Outcome], op: Any, explained: str | None
) -> None:
    found = loudness(probed(GL302, op, X))["x"]
    assert found[1] == explained
    assert (found[0] == "info") == (explained is not None)
    for function in (ClippedRatio, StableSigmoid, RootOfSquares):
        assert "apply" not in vars(function)


@torch.library.custom_op("gradlint_extremes::clipped_ratio", mutates_args=())
def clipped_ratio(x: Tensor) -> Tensor:
    return x.exp().clamp(max=1.0)


@torch.library.custom_op("gradlint_extremes::stable_sigmoid", mutates_args=())
def stable_sigmoid(x: Tensor) -> Tensor:
    return x.sigmoid()


def _saved(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0].exp())


clipped_ratio.register_autograd(ClippedRatio.backward, setup_context=_saved)
stable_sigmoid.register_autograd(
    lambda ctx, g: g * ctx.saved_tensors[0] / (1 + ctx.saved_tensors[0]) ** 2,
    setup_context=_saved,
)


@pytest.mark.parametrize(
    ("op", "loud"),
    [(clipped_ratio, ("info", "singular")), (stable_sigmoid, ("warning", None))],
)
def test_custom_operators_are_compared_with_autograd_too(
    probed: Callable[..., Outcome], op: Any, loud: tuple[str, str | None]
) -> None:
    assert loudness(probed(GL302, op, X))["x"] == loud


class Bonds(Function):
    """(r - 1)² over pairs of neighbouring points: no direction where two are at one place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x.diff(dim=0).norm(dim=-1) - 1.0).square()

    @staticmethod
    def slope(r: Tensor) -> Tensor:
        return 2.0 * (r - 1.0) / r

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        d = x.diff(dim=0)
        f = (g * cls.slope(d.norm(dim=-1))).unsqueeze(-1) * d
        zero = torch.zeros_like(x[:1])
        return torch.cat((zero, f)) - torch.cat((f, zero))


class Kernel(Bonds):
    """exp(-r²), which is smooth there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.exp(-x.diff(dim=0).norm(dim=-1).square())

    @staticmethod
    def slope(r: Tensor) -> Tensor:
        return -2.0 * r * torch.exp(-r.square()) / r


class FromOrigin(Bonds):
    """(r - 1)² of each point's own length: a point at the origin is no pair of equal ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return (x.norm(dim=-1) - 1.0).square()

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return (g * cls.slope(x.norm(dim=-1))).unsqueeze(-1) * x


@pytest.mark.parametrize(
    ("op", "loud"),
    [
        (Bonds, ("info", "singular")),
        (Kernel, ("warning", None)),
        (FromOrigin, ("warning", None)),
    ],
)
def test_a_bond_between_points_at_one_place_has_no_direction(
    probed: Callable[..., Outcome], op: type, loud: tuple[str, str | None]
) -> None:
    assert loudness(probed(GL302, op, X))["x"] == loud


class Weighted(Function):
    """w |r| or w r², r being the distance of two points: smooth where w is zero too."""

    power = 1

    @classmethod
    def forward(cls, ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return w * (x[1] - x[0]).norm() ** cls.power

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        d = x[1] - x[0]
        r = d.norm()
        f = g * w * cls.power * r ** (cls.power - 1) * d / r
        return torch.stack((-f, f)), g * r**cls.power


class WeightedSquare(Weighted):
    power = 2


@pytest.mark.parametrize(
    ("op", "loud"), [(Weighted, ("info", "singular")), (WeightedSquare, ("warning", None))]
)
def test_what_is_smooth_only_without_weight_has_no_direction_either(
    probed: Callable[..., Outcome], op: type, loud: tuple[str, str | None]
) -> None:
    assert loudness(probed(GL302, op, X[:2], torch.tensor(0.7)))["x"] == loud


class InBox(Function):
    """(r - 1)² of neighbours, or exp(-r²), in a box that repeats itself: forward divides by its
    size, which therefore stays as it is where all points are at one place."""

    @staticmethod
    def distance(x: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d = x.diff(dim=0)
        away = (d / size).round()
        d = d - size * away
        return d, away, d.norm(dim=-1, keepdim=True)

    @classmethod
    def forward(cls, ctx: Any, x: Tensor, size: Tensor) -> Tensor:
        ctx.save_for_backward(x, size)
        return (cls.distance(x, size)[2] - 1.0).square()

    @staticmethod
    def slope(r: Tensor) -> Tensor:
        return 2.0 * (r - 1.0) / r

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, size = ctx.saved_tensors
        d, away, r = cls.distance(x, size)
        f = g * cls.slope(r) * d
        zero = torch.zeros_like(x[:1])
        return torch.cat((zero, f)) - torch.cat((f, zero)), -(f * away).sum(0)


class KernelInBox(InBox):
    @classmethod
    def forward(cls, ctx: Any, x: Tensor, size: Tensor) -> Tensor:
        ctx.save_for_backward(x, size)
        return (-cls.distance(x, size)[2].square()).exp()

    @staticmethod
    def slope(r: Tensor) -> Tensor:
        return -2.0 * r * (-r.square()).exp() / r


@pytest.mark.parametrize(
    ("op", "loud"), [(InBox, ("info", "singular")), (KernelInBox, ("warning", None))]
)
def test_what_has_no_direction_explains_the_gradient_of_what_is_as_it_was(
    probed: Callable[..., Outcome], op: type, loud: tuple[str, str | None]
) -> None:
    found = loudness(probed(GL302, op, X, torch.tensor([4.0, 5.0, 6.0, 4.5, 5.5])[: X.shape[-1]]))
    assert found == {"x": loud, "size": loud}


def of_rotation(power: int, *, guarded: bool) -> type:
    class FromIdentity(Function):
        """|R - 1| to a power: a kink at the identity, or smooth."""

        @staticmethod
        def forward(ctx: Any, R: Tensor) -> Tensor:
            ctx.save_for_backward(R)
            return (R - torch.eye(3, dtype=R.dtype)).norm(dim=(-2, -1)) ** power

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            d = ctx.saved_tensors[0] - torch.eye(3, dtype=g.dtype)
            r = d.norm(dim=(-2, -1), keepdim=True)
            r = r.clamp(min=1e-30) if guarded else r
            return g[..., None, None] * power * r ** (power - 1) * d / r

    return FromIdentity


@pytest.mark.parametrize(
    ("power", "guarded", "found"), [(2, False, True), (2, True, False), (1, False, False)]
)
def test_nan_at_the_identity(
    probed: Callable[..., Outcome], power: int, guarded: bool, found: bool
) -> None:
    rotation = torch.linalg.matrix_exp(
        torch.tensor([[0, 0.3, -0.5], [-0.3, 0, 0.2], [0.5, -0.2, 0]])
    )
    outcome = probed(GL302, of_rotation(power, guarded=guarded), rotation)
    assert loudness(outcome) == ({"R": ("warning", None)} if found else {})
    assert all("at the identity" in finding.message for finding in outcome.findings)
    other = torch.arange(9.0).reshape(3, 3)
    assert not probed(GL302, of_rotation(power, guarded=guarded), other).findings


class DividesByTheRest(torch.autograd.Function):
    """∏ (1 - aₖ) along the last axis, with a backward that divides by each factor."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor) -> torch.Tensor:
        product = (1 - a).prod(-1, keepdim=True)
        ctx.save_for_backward(a, product)
        return product

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        a, product = ctx.saved_tensors
        return -grad * product / (1 - a)


@pytest.mark.parametrize(
    ("low", "high", "where"), [(0.1, 0.8, "special"), (-0.8, 0.8, "sample"), (0.1, 1.8, "sample")]
)
def test_nan_at_the_border_of_the_given_values_is_of_another_kind(
    probed: Callable[..., Outcome], low: float, high: float, where: str
) -> None:
    a = torch.linspace(low, high, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    (finding,) = probed(GL302, DividesByTheRest, a).findings
    assert "where it is 1" in finding.message
    assert finding.grounds.where == where


class DividesBelowOne(DividesByTheRest):
    """∏ (1 - aₖ) for a in [0, 1)."""


class DividesUpToOne(DividesByTheRest):
    """∏ (1 - aₖ) for a in [0, 1]."""


@pytest.mark.parametrize(
    ("op", "high", "found"),
    [
        (DividesBelowOne, 0.8, False),
        (DividesUpToOne, 0.8, True),
        # The given values are no such numbers: documentation means something else.
        (DividesBelowOne, 1.8, True),
    ],
)
def test_a_documented_interval_holds_for_given_values(
    probed: Callable[..., Outcome], op: Any, high: float, found: bool
) -> None:
    a = torch.linspace(0.1, high, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    findings = probed(GL302, op, a).findings
    assert any("where it is 1" in finding.message for finding in findings) is found


def test_ends_of_a_documented_interval() -> None:
    free = ValueRange()
    half_open = within(free, Range(0.0, 1.0, low_too=True))
    assert [half_open.holds(v) for v in (0.0, 0.5, 1.0, 2.0)] == [True, True, False, False]
    closed = within(free, Range(0.0, 1.0, high_too=True))
    assert [closed.holds(v) for v in (0.0, 0.5, 1.0, 2.0)] == [False, True, True, False]
    assert within(free, None) == free


def test_a_documented_sign_is_a_domain() -> None:
    class Documented(Function):
        """x·log(x) for x > 0."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * x.log()

    assert [found.holds(0.0) for found in ranges_of(in_domain(Documented, "", X.abs()))] == [False]
    assert ranges_of(in_domain(Documented, "all reals", X.abs()))[0].low == 0.0


class Lit(Function):
    """Shares of rows that add up to more than 1e-3, and zero in the others: 0 / 0 in backward."""

    guarded = False

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        total = x.sum(-1, keepdim=True)
        return x / torch.where(total > 1e-3, total, torch.ones_like(total)) * (total > 1e-3)

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        total = x.sum(-1, keepdim=True)
        lit = total > 1e-3
        total = torch.where(lit, total, torch.ones_like(total)) if cls.guarded else total
        return (g - (g * x / total).sum(-1, keepdim=True)) / total * lit


class GuardedLit(Lit):
    guarded = True


@pytest.mark.parametrize(("op", "found"), [(Lit, True), (GuardedLit, False)])
def test_steps_beyond_a_threshold_hide_no_derivative(
    probed: Callable[..., Outcome], op: Any, found: bool
) -> None:
    findings = probed(GL302, op, X.double().abs()).findings
    assert any("every element is zero" in item.message for item in findings) is found


class Powers(Function):
    """(|cos m·φ|^n + |sin m·φ|^n)^(-1/k): all is NaN at zeros of k, as it may be; 0·log 0 where φ
    alone is zero is a fault."""

    @staticmethod
    def forward(ctx: Any, phi: Tensor, m: Tensor, n: Tensor, k: Tensor) -> Tensor:
        ctx.save_for_backward(phi, m, n, k)
        s = (m * phi).sin().abs()
        return (1 + s**n) ** (-1 / k)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        phi, m, n, k = ctx.saved_tensors
        s, sign = (m * phi).sin().abs(), (m * phi).sin().sign()
        whole = 1 + s**n
        out = g * whole ** (-1 / k)
        inner = -out / (k * whole)
        slope = inner * n * s ** (n - 1) * sign * (m * phi).cos()
        by_n = (inner * s**n * s.log()).sum()
        return slope * m, (slope * phi).sum(), by_n, (out * whole.log()).sum() / k**2


def test_what_is_explained_at_zeros_hides_nothing_elsewhere(
    probed: Callable[..., Outcome],
) -> None:
    numbers = [torch.tensor(v, dtype=torch.float64) for v in (0.7, 2.2, 0.8)]
    findings = probed(GL302, Powers, X.double().reshape(-1)[:4], *numbers).findings
    by_n = [item for item in findings if item.input == "n"]
    assert [item.grounds.explained for item in by_n] == [None]


class Box(Function):
    """The centre of a box with lower < upper, tilted: divides by its width in backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
        ctx.save_for_backward(x, lower, upper)
        half = (upper - lower) / 2
        return (upper + lower) / 2 - x * half

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, lower, upper = ctx.saved_tensors
        width = upper - lower
        one = g * width / width / 2
        return -g * width / 2, one * (1 + x), one * (1 - x)


class OpenBox(Box):
    """The same without a word on the order of the bounds."""


@pytest.mark.parametrize(("op", "found"), [(Box, False), (OpenBox, True)])
def test_a_documented_order_of_two_arguments_is_kept(
    probed: Callable[..., Outcome], op: Any, found: bool
) -> None:
    lower, upper = (k * torch.ones(3, dtype=torch.float64) for k in (-1.0, 1.5))
    inputs = [X.double().reshape(-1)[:3], lower, upper]
    findings = probed(GL302, op, *inputs).findings
    assert any("every element is zero" in item.message for item in findings) is found


class Scan(Function):
    """Σ over two steps of a state that decays by exp(t·a): overflows where a is positive."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, a: Tensor) -> Tensor:
        decay = torch.exp(t * a)
        return decay * torch.zeros_like(t) + t

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        return g, torch.zeros_like(g)


class NaiveSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        e = x.exp()
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y, w)
        return y * w

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        y, w = ctx.saved_tensors
        h = g * w
        return y * (h - (h * y).sum(-1, keepdim=True)), g * y


@pytest.mark.parametrize(
    ("op", "origin", "explained"),
    [
        (Scan, "inferred", "signs"),
        (Scan, "--inputs", None),
        (NaiveSoftmax, "inferred", "undefined"),
        (NaiveSoftmax, "--inputs", None),
    ],
)
def test_overflow_that_depends_on_guessed_signs(
    op: Any, origin: Any, explained: str | None
) -> None:
    values = (X.double().requires_grad_(), X.flip(0).double().abs().requires_grad_())
    assert GL303.probe is not None
    found = GL303.probe(Subject(from_object(op), Sample("s", origin, values), Settings(seed=1)))
    assert {item.input: item.grounds.explained for item in found.findings}[
        "t" if op is Scan else "x"
    ] == explained


class ConstantScan(Scan):
    """The same with constant a."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g, None


class Softmax(NaiveSoftmax):
    """With a constant mask, whose sign changes nothing."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return NaiveSoftmax.backward(ctx, g)[0], None


@pytest.mark.parametrize(
    ("op", "origin", "explained"),
    [
        (ConstantScan, "inferred", "signs"),
        (ConstantScan, "--inputs", None),
        (Softmax, "inferred", "undefined"),
        (Softmax, "--inputs", None),
    ],
)
def test_overflow_that_depends_on_the_signs_of_constants(
    op: Any, origin: Any, explained: str | None
) -> None:
    constant = torch.tensor([0.6, -0.9, -1.2, 0.8], dtype=torch.float64)
    sample = Sample("s", origin, (X.double().requires_grad_(), constant))
    assert GL303.probe is not None
    (found,) = GL303.probe(Subject(from_object(op), sample, Settings(seed=1))).findings
    assert found.grounds.explained == explained


class Compressed(Function):
    """(s + d)^p − d^p for s ≥ 0: at d = 0, the gradient of p is zero times infinity."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, d: Tensor, p: Tensor) -> Tensor:
        ctx.save_for_backward(s, d, p)
        return (s.square() + d) ** p - d**p

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        s, d, p = ctx.saved_tensors
        u = s.square() + d
        inner = g * p * u ** (p - 1)
        of_p = g * (u**p * u.log() - d**p * d.log())
        return 2 * s * inner, (inner - g * p * d ** (p - 1)).sum(0), of_p.sum(0)


class Compressor(torch.nn.Module):
    """With parameters that start at ``start``."""

    def __init__(self, start: float = 2.0) -> None:
        super().__init__()
        self.d = torch.nn.Parameter(torch.full((4,), start, dtype=torch.float64))
        self.p = torch.nn.Parameter(torch.full((4,), 1.5, dtype=torch.float64))

    def forward(self, s: Tensor) -> Tensor:
        return Compressed.apply(s, self.d, self.p)


class FaultyCompressor(Compressor):
    """The same, and NaN at zeros of the data."""

    def forward(self, s: Tensor) -> Tensor:
        return Compressed.apply(s, self.d, self.p) + Sinc.apply(s)


class Sinc(Function):
    """sin(x) / x, whose backward divides by zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.sinc(x / math.pi)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * (x.cos() / x - x.sin() / x**2)


def test_zero_in_a_parameter_that_starts_away_from_it_is_information(
    probed: Callable[..., Outcome],
) -> None:
    parts = (torch.full((4,), 2.0), torch.full((4,), 1.5))
    assert loudness(probed(GL302, Compressor(), X)) == {"p": ("info", "parameter")}
    # As an argument, it may be data.
    assert loudness(probed(GL302, Compressed, X, *parts)) == {"p": ("warning", None)}
    found = loudness(probed(GL302, FaultyCompressor(), X))
    assert found["s"] == ("error", None)
    assert found["p"] == ("info", "parameter")


class Softened(Function):
    """sigmoid(x / exp(log_tau)): right, and NaN where exp(log_tau) vanishes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, log_tau: Tensor) -> Tensor:
        tau = log_tau.exp()
        s = (x / tau).sigmoid()
        ctx.save_for_backward(x, tau, s)
        return s

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        x, tau, s = ctx.saved_tensors
        inner = g * s * (1 - s)
        return inner / tau, (-inner * x / tau).sum(0)


class Softener(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        start = torch.tensor([-0.3, 0.2, -0.1, 0.4], dtype=torch.float64)
        self.log_tau = torch.nn.Parameter(start)

    def forward(self, x: Tensor) -> Tensor:
        return Softened.apply(x, self.log_tau)


class Softplus(Function):
    """Whose backward overflows at large values of the data."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.nn.functional.softplus(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * x.exp() / (1 + x.exp())


class FaultySoftener(Softener):
    def forward(self, x: Tensor) -> Tensor:
        return Softened.apply(x, self.log_tau) + Softplus.apply(x)


softened = Softened.apply  # by another name, so that forward's own operations are no second opinion


def test_extreme_values_of_a_parameter_are_information(probed: Callable[..., Outcome]) -> None:
    assert loudness(probed(GL302, Softener(), X)) == {
        "x": ("info", "parameter"),
        "log_tau": ("info", "parameter"),
    }
    # So are those of an argument that is the logarithm of a scale by its name. Another one may be
    # data; and data that overflow are no matter of the parameter.
    log_tau = torch.tensor([-0.3, 0.2, -0.1, 0.4])
    assert loudness(probed(GL302, Softened, X, log_tau)) == {
        "x": ("info", "parameter"),
        "log_tau": ("info", "parameter"),
    }
    assert loudness(probed(GL302, lambda x, h: softened(x, h), X, log_tau)) == {
        "x": ("warning", None),
        "h": ("warning", None),
    }
    found = loudness(probed(GL302, FaultySoftener(), X))
    assert found == {"x": ("warning", None), "log_tau": ("info", "parameter")}


class Reflected(Function):
    """Reflects x at a plane."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Tensor) -> Tensor:
        ctx.save_for_backward(x, axis)
        unit = torch.nn.functional.normalize(axis, dim=-1)
        return x - 2 * (x * unit).sum(-1, keepdim=True) * unit

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, ...]:
        x, axis = ctx.saved_tensors
        norm = axis.norm(dim=-1, keepdim=True)
        u = axis / norm
        along, other = (g * u).sum(-1, keepdim=True), (x * u).sum(-1, keepdim=True)
        of_u = -2 * (x * along + g * other)
        return g - 2 * along * u, (of_u - (of_u * u).sum(-1, keepdim=True) * u) / norm


class ReflectedAtAny(Reflected):
    """The same: any axis but 0 will do."""


def test_zeros_that_the_documentation_excludes_are_not_tried(
    probed: Callable[..., Outcome],
) -> None:
    axes = X.flip(0)
    found = loudness(probed(GL302, ReflectedAtAny, X, axes))
    assert {severity for severity, _ in found.values()} == {"info"}  # at the tiniest values
    found = loudness(probed(GL302, Reflected, X, axes))
    assert found == {"x": ("warning", None), "axis": ("warning", None)}


def heavy_tailed(x: Tensor, log_scale: Tensor) -> Tensor:
    return log_scale + 2 * torch.log1p((x * torch.exp(-log_scale)).square() / 3)


def with_log_length(x: Tensor, log_l: Tensor) -> Tensor:
    s = (x / log_l.exp()).abs()
    return (1 + s) * torch.exp(-s)


def by_weights(x: Tensor, log_weight: Tensor) -> Tensor:
    return (log_weight.exp() * x).sum(-1) / log_weight.exp().sum(-1)


def squared_twice(x: Tensor, log_scale: Tensor) -> Tensor:
    return log_scale + torch.log1p((x * torch.exp(-log_scale)).pow(4)).sqrt()


@pytest.mark.parametrize(
    ("op", "names"),
    [
        (heavy_tailed, []),
        (with_log_length, []),
        (by_weights, ["log_weight"]),
        (squared_twice, ["log_scale"]),
    ],
)
def test_the_exponential_of_a_log_scale_fits_into_the_dtype(
    probed: Callable[..., Outcome], op: Callable[..., Tensor], names: list[str]
) -> None:
    outcome = probed(GL303, op, X, X.flip(0), dtype=torch.float32)
    assert [finding.input for finding in outcome.findings] == names


class Rings(Function):
    """A sine of one input, of which large steps tell nothing, beside the logarithm of another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sharp: Tensor) -> Tensor:
        ctx.save_for_backward(x, sharp)
        return sharp * (30 * x).cos() - torch.nn.functional.softplus(sharp)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, sharp = ctx.saved_tensors
        return -30 * g * sharp * (30 * x).sin(), g * ((30 * x).cos() - sharp.sigmoid())


class RingsOverflow(Rings):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, sharp = ctx.saved_tensors
        return -30 * g * sharp * (30 * x).sin(), g * (
            (30 * x).cos() - sharp.exp() / (1 + sharp.exp())
        )


def test_an_input_is_judged_beside_one_that_large_steps_tell_nothing_of(
    probed: Callable[..., Outcome],
) -> None:
    torch.manual_seed(1)
    x, sharp = torch.randn(3, 4).double(), torch.rand(3, 4).double() + 0.3
    outcome = probed(GL302, RingsOverflow, x, sharp)
    (finding,) = outcome.findings
    assert (finding.input, finding.grounds.where) == ("sharp", "extreme")
    assert "is NaN" in finding.message
    assert probed(GL302, Rings, x, sharp).findings == []


class Quantized(torch.Tensor):
    """Keeps its dtype: ``to`` another one raises."""

    fixed = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if cls.fixed and func is torch.Tensor.to and isinstance(args[0], cls):
            raise ValueError("the dtype cannot be changed")
        return super().__torch_function__(func, types, args, kwargs or {})


class Free(Quantized):
    fixed = False


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("kind", "verdict"), [(Quantized, "skipped"), (Free, "fail")])
def test_outputs_that_keep_their_dtype_are_not_looked_at(
    probed: Callable[..., Outcome], kind: type[Quantized], verdict: str, dtype: torch.dtype
) -> None:
    outcome = probed(GL303, lambda x: (x.exp() / (1 + x.exp())).as_subclass(kind), X, dtype=dtype)
    assert outcome.verdict == verdict
    assert outcome.note == (FIXED_DTYPE if verdict == "skipped" else "")


class Shares(Function):
    """Logarithm of each row's sum from the right, with the largest element of the row taken off in
    backward: right for scores of any size, and ∞·0 where two of a row lie 710 apart."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.flip(-1).logcumsumexp(-1).flip(-1)
        ctx.save_for_backward(x, total)
        return total.sum(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, total = ctx.saved_tensors
        top = x.amax(-1, keepdim=True)
        return g[:, None] * (x - top).exp() * (top - total).exp().cumsum(-1)


class Unshifted(Shares):
    """Without the largest element: not finite wherever scores are large."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        x, total = ctx.saved_tensors
        return g[:, None] * x.exp() * (-total).exp().cumsum(-1)


class Compared(Function):
    """Softplus of the difference of two scores, with a slope that overflows where it is large."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a - b)
        return torch.nn.functional.softplus(a - b, threshold=1e9).where(a - b < 700, a - b)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        (d,) = ctx.saved_tensors
        found = g * d.exp() / (1 + d.exp())
        return found, -found


@pytest.mark.parametrize(
    ("op", "args", "severities"),
    [
        (Shares, (X,), {"info"}),
        (Unshifted, (X,), {"warning"}),
        (Compared, (X, X.flip(0) / 2), {"warning"}),
        (formula(torch.nn.functional.softplus, lambda x: x.exp() / (1 + x.exp())), (X,),
         {"warning"}),
    ],
)  # fmt: skip
def test_nan_that_takes_elements_far_apart_is_information(
    probed: Callable[..., Outcome], op: Any, args: tuple[Tensor, ...], severities: set[str]
) -> None:
    found = probed(GL302, op, *(item.double() for item in args)).findings
    large = [item for item in found if "magnitudes" in item.message]
    assert {decided(item.severity, item.grounds)[0] for item in large} == severities


class Discounted(Function):
    """Backward divides by the price, which is never zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, spot: Tensor) -> Tensor:
        y = x.sum() * spot
        ctx.save_for_backward(x, spot, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, spot, y = ctx.saved_tensors
        return (g * spot).expand_as(x), (g * y / spot).sum()


class Shifted(Discounted):
    """The same of something that may be."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shift: Tensor) -> Tensor:
        return Discounted.forward(ctx, x, shift)


@pytest.mark.parametrize(("op", "inputs"), [(Discounted, set()), (Shifted, {"shift"})])
def test_what_is_positive_by_its_name_is_not_zero(
    probed: Callable[..., Outcome], op: Any, inputs: set[str]
) -> None:
    outcome = probed(GL302, op, X.double(), torch.tensor(1.7, dtype=torch.float64))
    assert {item.input for item in outcome.findings if "zero" in item.message} == inputs


class Waiting(torch.nn.Module):
    """exp(-lag / tau) of lags above zero; at a tau of zero backward is NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.tau = torch.nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Decayed.apply(x, self.tau)


class Decayed(torch.autograd.Function):
    @staticmethod
    def kernel(x, tau):
        lag = torch.arange(x.shape[-1], dtype=x.dtype)
        return torch.where(lag > 0, torch.exp(-lag / tau), torch.zeros_like(lag)), lag

    @staticmethod
    def forward(ctx, x, tau):
        ctx.save_for_backward(x, tau)
        return x * Decayed.kernel(x, tau)[0]

    @staticmethod
    def backward(ctx, g):
        x, tau = ctx.saved_tensors
        kernel, lag = Decayed.kernel(x, tau)
        return g * kernel, (g * x * kernel * lag).sum() / tau**2


def test_zeros_of_a_parameter_that_starts_without_one() -> None:
    module = Waiting().double()
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    report = gradlint.check(module, [(x.requires_grad_(),)], seed=0, order=1, select=["GL302"])
    found = [f for target in report.targets for f in target.findings if f.input == "tau"]
    assert [f.severity for f in found if "every element is zero" in f.message] == ["info"]


class Standardized(torch.autograd.Function):
    """Third moment of standardized columns: undefined where all of one are equal."""

    @staticmethod
    def parts(x):
        centred = x - x.mean(0)
        sd = centred.square().mean(0).sqrt()
        u = centred / sd
        return u, sd, u.pow(3).mean(0)

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        _, sd, skew = Standardized.parts(x)
        return x.mean(0) + sd * skew

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        u, _, skew = Standardized.parts(x)
        return g * (1 + skew * u + 3 * (u**2 - 1 - skew * u)) / x.shape[0]


def test_remainders_of_rounding_beside_a_mean_are_no_values() -> None:
    x = torch.randn(7, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    report = gradlint.check(
        Standardized, [(x.requires_grad_(),)], seed=0, order=1, select=["GL4", "GL302"]
    )
    assert [f for target in report.targets for f in target.findings] == []


class TraceOfRoot(torch.autograd.Function):
    """tr(A^(1/2)) for A (n, n) symmetric positive definite."""

    @staticmethod
    def forward(ctx, A):
        lam, v = torch.linalg.eigh(A)
        ctx.save_for_backward(lam, v)
        return lam.sqrt().sum()

    @staticmethod
    def backward(ctx, g):
        lam, v = ctx.saved_tensors
        return g * (v * (0.5 / lam.sqrt()).unsqueeze(-2)) @ v.mT


class TraceOfAnyRoot(TraceOfRoot):
    """tr(A^(1/2)) of matrices (n, n)."""


@pytest.mark.parametrize(
    ("op", "definite", "zero"),
    [(TraceOfRoot, True, False), (TraceOfRoot, False, True), (TraceOfAnyRoot, True, True)],
)
def test_zeros_are_no_definite_matrix(
    op: type[torch.autograd.Function], definite: bool, zero: bool
) -> None:
    half = torch.randn(3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    matrix = half @ half.mT + torch.eye(3, dtype=torch.float64) if definite else half + half.mT
    sample = Sample("given", "given", (matrix.requires_grad_(),), {})
    (found,) = ranges_of(Subject(from_object(op), sample, Settings()))
    assert found.zero is zero


def test_equal_elements_are_short_numbers_and_other_ones_in_another_input() -> None:
    X = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    one, other = ties([X, 1.001 * X], [ANY, ANY])
    assert bool((one - one.mean(0) == 0).all())
    assert abs(float(one[0, 0]) - float(X.square().mean().sqrt())) < 0.05
    assert float(one[0, 0]) != float(other[0, 0])

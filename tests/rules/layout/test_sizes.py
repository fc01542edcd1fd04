"""GL705, GL706 and GL707: other sizes than the sample's."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.autograd import Function

from gradlint.experiments.baseline_comparison import make_baseline
from gradlint.experiments.layout import other_sizes as _sizes
from gradlint.experiments.layout.chosen_sizes import affordable_sizes, odd_sizes, twice_a_prime
from gradlint.experiments.subject import Subject
from gradlint.inputs.resized import tied_axes
from gradlint.model.rule import Outcome
from gradlint.rules.catalogue import by_code


def products(x: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    """Those of every row with its gradient, a row each."""
    found = grad_output[..., None] * x
    return found.reshape(found.shape[:-1].numel(), found.shape[-1])


class Scale(Function):
    """x·weight, summed over columns."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output[..., None] * weight, products(x, grad_output).sum(0)


class TailLost(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        rows = products(x, grad_output)
        return grad_output[..., None] * weight, rows[: len(rows) // 4 * 4].sum(0)


class Truncated(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        _, weight = ctx.saved_tensors
        grad_x, grad_weight = Scale.backward(ctx, grad_output)
        return grad_x[..., : len(weight) // 3 * 3], grad_weight


class Squeezes(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = Scale.backward(ctx, grad_output)
        return grad_x.squeeze(), grad_weight


class Halves(Function):
    """Swaps the halves of rows; the middle of odd rows is no fixed point of that."""

    @staticmethod
    def forward(ctx, x):
        half = x.shape[-1] // 2
        return torch.cat([-x[..., half:], x[..., :half]], -1)

    @staticmethod
    def backward(ctx, grad_output):
        half = grad_output.shape[-1] // 2
        return torch.cat([grad_output[..., half:], -grad_output[..., :half]], -1)


class Thinned(Function):
    """Sums of neighbours around every other element, zero beyond the ends."""

    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape[-1]
        padded = torch.nn.functional.pad(x, (1, 1))
        return sum(padded[..., k : k + ctx.size : 2] for k in range(3))

    @staticmethod
    def backward(ctx, grad_output):
        padded = grad_output.new_zeros((*grad_output.shape[:-1], ctx.size + 2))
        for k in range(3):
            padded[..., k : k + ctx.size : 2] += grad_output
        return padded[..., 1:-1]


class ThinnedTwice(Thinned):
    """The last of an odd number counts twice."""

    @staticmethod
    def backward(ctx, grad_output):
        grad = Thinned.backward(ctx, grad_output).clone()
        grad[..., -1] *= 1 + ctx.size % 2
        return grad


class FirstAxis(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return y * (grad_output - (grad_output * y).sum(1, keepdim=True))


class RowsOnly(FirstAxis):
    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        rows, _ = y.shape
        return y * (grad_output - (grad_output * y).sum(1).view(rows, 1))


class Mean(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        rows = products(x, grad_output)
        return grad_output[..., None] * weight, rows.mean(0) * len(rows)


class Unwritten(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_weight = Scale.backward(ctx, grad_output)
        return grad_x, grad_weight if len(grad_output) else torch.empty_like(grad_weight)


class Largest(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        top = grad_output.abs().max()
        grad_x, grad_weight = Scale.backward(ctx, grad_output / top)
        return grad_x * top, grad_weight * top


class LargestColumn(Scale):
    @staticmethod
    def backward(ctx, grad_output):
        _, weight = ctx.saved_tensors
        top = weight.abs().max()
        grad_x, grad_weight = Scale.backward(ctx, grad_output / top)
        return grad_x * top, grad_weight * top


class Sine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()


class Loops(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.stack([grad_output[k] * x[k].cos() for k in range(len(x))])


class Matrices(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        rows, columns = x.shape
        return (grad_output * x.cos()).view(rows, columns)


class One(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos() if x.dim() else x.cos()


class Wrong(Sine):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3


def matrix(rows: int = 4, columns: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(rows, columns, generator=generator)


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    return matrix(), matrix()[0] + 0.5


def probe(probed: Callable[..., Outcome], code: str, op: Any, *args: Any, **kwargs: Any) -> Outcome:
    rule = by_code(code)
    assert rule is not None
    return probed(rule, op, *args, **kwargs)


def told(outcome: Outcome) -> list[tuple[str, str]]:
    return [(finding.severity, finding.message) for finding in outcome.findings]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_right_at_every_size(probed: Callable[..., Outcome], dtype: torch.dtype) -> None:
    for op, args in ((Scale, pair()), (Sine, (matrix(),)), (lambda x: x.exp(), (matrix(),))):
        for code in ("GL705", "GL706", "GL707"):
            outcome = probe(probed, code, op, *args, dtype=dtype)
            assert outcome.findings == [], (op, code)
            assert outcome.verdict == "pass", (op, code, outcome.note)


def test_wrong_at_the_sample_is_told_elsewhere(probed: Callable[..., Outcome]) -> None:
    for code in ("GL706", "GL707"):
        assert probe(probed, code, Wrong, matrix()).findings == []


def test_tail_of_a_block(probed: Callable[..., Outcome]) -> None:
    assert told(probe(probed, "GL706", TailLost, *pair())) == [
        ("error", "wrong gradient for `weight` where `x` has shape [13, 6]")
    ]


def test_shape_cut_off(probed: Callable[..., Outcome]) -> None:
    ((severity, message),) = told(probe(probed, "GL706", Truncated, *pair()))
    assert severity == "error"
    assert message.startswith("backward raises RuntimeError where `x` has shape [4, ")


def test_batch_of_one(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL706", Squeezes, *pair())
    assert told(outcome)[0] == ("error", "backward raises RuntimeError where `x` has shape [1, 6]")
    assert outcome.findings[0].cause == "size-one"


def test_halves_are_a_demand_not_an_error(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL706", Halves, matrix())
    assert outcome.verdict == "pass"
    ((severity, message),) = told(outcome)
    assert severity == "info"
    assert message == "wrong gradient for `x` where `x` has shape [4, 1025]"
    assert "accepts an odd size where it needs two halves" in outcome.findings[0].cause_text


def test_odd_sizes_are_no_demand_where_nothing_is_halved(probed: Callable[..., Outcome]) -> None:
    assert probe(probed, "GL706", Thinned, matrix()).verdict == "pass"
    outcome = probe(probed, "GL706", ThinnedTwice, matrix())
    assert told(outcome) == [("error", "wrong gradient for `x` where `x` has shape [4, 1025]")]


def test_odd_sizes_that_are_meant_are_no_demand(probed: Callable[..., Outcome]) -> None:
    meant = type("Meant", (Halves,), {"__doc__": "Halves. x: real (..., N), any N >= 1."})
    outcome = probe(probed, "GL706", meant, matrix())
    ((severity, message),) = told(outcome)
    assert severity == "error"
    assert message == "wrong gradient for `x` where `x` has shape [4, 1025]"
    assert "needs two halves" not in outcome.findings[0].cause_text


class SomeEvenSizes(Function):
    """x², without the last column's gradient at odd sizes and at multiples of four."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_x = 2 * grad_output * x
        if x.shape[-1] > 6 and x.shape[-1] % 4 != 2:
            grad_x[..., -1] = 0
        return grad_x


def test_one_even_size_that_is_right_excuses_nothing(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL706", SomeEvenSizes, matrix())
    assert [severity for severity, _ in told(outcome)] == ["error"]


def test_other_number_of_axes(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL706", FirstAxis, matrix())
    assert told(outcome) == [("error", "wrong gradient for `x` where `x` has shape [3, 4, 6]")]
    assert outcome.findings[0].cause == "rank"
    # Forward took it by accident: backward says so.
    assert told(probe(probed, "GL706", RowsOnly, matrix())) == []


class Distances(Function):
    """Mean of the squared lengths of rows. With another axis, the sum is along another one: forward
    takes that by accident, and backward divides by another count."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.square().sum(1).mean()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x / x.shape[0]


def test_another_function_with_another_axis_is_information(
    probed: Callable[..., Outcome],
) -> None:
    (finding,) = probe(probed, "GL706", Distances, matrix()).findings
    assert finding.grounds.explained == "other-function"
    assert "refuse other numbers of axes" in finding.help
    # A batch is taken for what it is: the fault is backward's.
    (finding,) = probe(probed, "GL706", FirstAxis, matrix()).findings
    assert finding.grounds.explained is None


class BoxMeans(Function):
    """Means over ranges of columns, both ends included; backward divides by what the ends say."""

    @staticmethod
    def forward(ctx, x, ranges):
        ctx.ranges, ctx.shape = ranges.tolist(), x.shape
        return torch.stack([x[:, a : b + 1].mean(1) for a, b in ctx.ranges])

    @staticmethod
    def backward(ctx, grad_output):
        grad_x = grad_output.new_zeros(ctx.shape)
        for row, (a, b) in enumerate(ctx.ranges):
            grad_x[:, a : b + 1] += (grad_output[row] / (b + 1 - a))[:, None]
        return grad_x, None


class HalfBoxMeans(BoxMeans):
    """The last column of a range gets no gradient if there are many columns."""

    @staticmethod
    def backward(ctx, grad_output):
        grad_x = BoxMeans.backward(ctx, grad_output)[0]
        if ctx.shape[0] > 4:
            grad_x[-1] = 0
        return grad_x, None


def test_integers_that_fit_no_other_size_blame_nobody(probed: Callable[..., Outcome]) -> None:
    ranges = torch.tensor([[0, 3], [2, 5], [1, 2], [4, 5]])
    assert told(probe(probed, "GL706", BoxMeans, matrix(), ranges)) == []
    assert "error" in dict(told(probe(probed, "GL706", HalfBoxMeans, matrix(), ranges)))


def test_forward_takes_no_other_size(probed: Callable[..., Outcome]) -> None:
    def fixed(x: torch.Tensor) -> torch.Tensor:
        assert x.shape == (4, 6)
        return x.sin()

    for code in ("GL705", "GL706", "GL707"):
        outcome = probe(probed, code, fixed, matrix())
        assert outcome.verdict == "skipped"
        assert "forward" in outcome.note


def test_sizes_handed_over_as_integers(probed: Callable[..., Outcome]) -> None:
    def rows(x: torch.Tensor, count: int) -> torch.Tensor:
        return x.reshape(count, -1).sum(1)

    assert probe(probed, "GL706", rows, matrix(), 4).verdict == "pass"


def test_nothing_to_sum(probed: Callable[..., Outcome]) -> None:
    for op in (Mean, Unwritten):
        outcome = probe(probed, "GL705", op, *pair())
        assert told(outcome) == [
            ("error", "gradient for `weight` is not zero where `x` has shape [0, 6]")
        ]
        assert outcome.findings[0].evidence["elements"][0]["returned"] != 0.0


def test_empty_batch_raises(probed: Callable[..., Outcome]) -> None:
    assert told(probe(probed, "GL705", Largest, *pair())) == [
        ("error", "backward raises RuntimeError where `x` has shape [0, 6]")
    ]


def test_empty_columns_are_noted_only(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL705", LargestColumn, *pair())
    assert outcome.verdict == "pass"
    ((severity, message),) = told(outcome)
    assert severity == "info"
    assert "has shape [4, 0]" in message


def test_no_dimensions(probed: Callable[..., Outcome]) -> None:
    assert told(probe(probed, "GL707", Loops, matrix())) == [
        ("error", "backward raises TypeError where every tensor has no dimensions")
    ]
    assert told(probe(probed, "GL707", One, matrix())) == [
        ("error", "wrong gradient for `x` where every tensor has no dimensions")
    ]


def test_only_matrices_are_meant(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL707", Matrices, matrix())
    assert (outcome.verdict, outcome.findings) == ("skipped", [])
    outcome = probe(probed, "GL707", FirstAxis, matrix())
    assert (outcome.verdict, outcome.findings) == ("skipped", [])


def test_odd_sizes_are_odd_distinct_and_affordable(subject: Callable[..., Subject]) -> None:
    bound = subject(lambda x, w: x @ w, matrix(4, 6), matrix(6, 5))
    found = odd_sizes(bound, tied_axes(bound.sample))
    assert set(found) == {4, 5, 6}
    assert len(set(found.values())) == 3
    assert all(size % 2 for size in found.values())
    assert found[4] * found[6] + found[6] * found[5] <= 4096
    alone = subject(torch.sin, matrix(4, 6))
    assert odd_sizes(alone, tied_axes(alone.sample)) == {6: 1025, 4: 3}
    large = subject(torch.sin, torch.ones(300, 200))
    assert odd_sizes(large, tied_axes(large.sample)) == {200: 1025, 300: 3}


class Waits:
    """Waits in every call, or in the first ones only."""

    def __init__(self, seconds: float, calls: float = math.inf, each: float = 0.0) -> None:
        self.seconds, self.left, self.each = seconds, calls, each

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds * (self.left > 0) + self.each * x.numel())
        self.left -= 1
        return x.sin()


@pytest.mark.parametrize("op", [Waits(0.03), Waits(0.3, calls=1), Waits(0.6, calls=1)])
def test_what_a_call_takes_anyway_does_not_keep_sizes_small(
    subject: Callable[..., Subject], op: Waits
) -> None:
    bound = subject(op, matrix(4, 6))
    assert bound.run.error is None
    assert affordable_sizes(bound, tied_axes(bound.sample)) == ({6: 1025, 4: 3}, "")


def test_slow_loops_keep_sizes_small_and_it_is_said(probed: Callable[..., Outcome]) -> None:
    outcome = probe(probed, "GL706", Waits(0.0, each=4e-4), matrix(4, 6))
    assert outcome.verdict == "pass"
    assert re.fullmatch(r"odd sizes stay small: a call takes [\d.]+ s", outcome.note)


def test_sizes_that_are_left_out_are_told(
    probed: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sizes, "SHARE_OF_TIMEOUT", 0.0)
    monkeypatch.setattr(_sizes, "had_seconds", itertools.count().__next__)  # it may stand still
    for code in ("GL705", "GL706"):
        outcome = probe(probed, code, torch.sin, matrix(4, 6))
        assert outcome.verdict == "skipped"
        said = r"further sizes are left out: \d+% of --timeout 60 are spent"
        assert re.fullmatch(said, outcome.note)


def test_twice_a_prime() -> None:
    assert [twice_a_prime(size) for size in (5, 9, 17, 33, 257, 1025)] == [
        10,
        10,
        22,
        34,
        262,
        1042,
    ]


def test_cost(subject: Callable[..., Subject]) -> None:
    bound = subject(Scale, *pair())
    assert bound.first_order is not None
    before = bound.problem.forward_calls + bound.problem.backward_calls
    assert bound.once(make_baseline) is not None
    shared = bound.problem.forward_calls + bound.problem.backward_calls
    rule = by_code("GL706")
    assert rule is not None
    rule.probe(bound)
    spent = bound.problem.forward_calls + bound.problem.backward_calls - shared
    assert spent <= 25, (spent, before)


class Columns(Function):
    """The columns of even number, and those of odd number."""

    @staticmethod
    def forward(ctx, x):
        return x[:, ::2].clone(), x[:, 1::2].clone()

    @staticmethod
    def backward(ctx, even, odd):
        x = even.new_zeros(even.shape[0], even.shape[1] + odd.shape[1])
        x[:, ::2], x[:, 1::2] = even, odd
        return x


class ColumnsOfThree(Columns):
    """Takes the number of rows for that of columns, which is right for 3 rows and 5 columns."""

    @staticmethod
    def backward(ctx, even, odd):
        x = even.new_zeros(even.shape[0], even.shape[0] + odd.shape[1])
        x[:, ::2], x[:, 1::2] = even, odd
        return x


def test_a_size_that_an_output_has_by_chance(probed: Callable[..., Outcome]) -> None:
    """One output is 3 by 3: its columns don't keep the size of the rows, they have another."""
    x = matrix(3, 5)
    outcome = probe(probed, "GL706", ColumnsOfThree, x)
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity, finding.cause) == ("fail", "error", "odd-size")
    assert finding.message.startswith("backward raises RuntimeError where `x` has shape")
    outcome = probe(probed, "GL706", Columns, x)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class ThreeAxes(Function):
    """The mean over time of (N, C, T), channel by channel with its own weight."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight.view(-1, 1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight.view(-1, 1), (grad_output * x).sum((0, 2))


class AnyAxes(ThreeAxes):
    """The same of (N, ..., C, T)."""


def test_documented_number_of_axes(probed: Callable[..., Outcome]) -> None:
    """With an axis in front, the gradient of weight is summed over the wrong axes; where the
    docstring says (N, C, T), nobody passes that."""
    x, weight = torch.randn(4, 3, 3), torch.randn(3)
    assert told(probe(probed, "GL706", ThreeAxes, x, weight)) == []
    ((severity, message),) = told(probe(probed, "GL706", AnyAxes, x, weight))
    assert (severity, message) == (
        "error",
        "wrong gradient for `weight` where `x` has shape [5, 4, 3, 3]",
    )


class Squares(Function):
    """Squares of a batch of matrices."""

    @staticmethod
    def forward(ctx, m):
        ctx.save_for_backward(m)
        return m @ m

    @staticmethod
    def backward(ctx, grad_output):
        (m,) = ctx.saved_tensors
        found = grad_output @ m.mT + m.mT @ grad_output
        return found * (1 if m.shape[-1] == 3 else 2)


class SquaresOfThree(Squares):
    """Squares of a batch of 3x3 matrices."""


class SquaresWithThree(Squares):
    """Squares of matrices, as before a 3x3 convolution."""


def test_sizes_in_words_are_kept(probed: Callable[..., Outcome]) -> None:
    m = torch.randn(4, 3, 3)
    assert told(probe(probed, "GL706", SquaresOfThree, m)) == []
    for op in (Squares, SquaresWithThree):
        ((severity, message),) = told(probe(probed, "GL706", op, m))
        assert severity == "error"
        assert message.startswith("wrong gradient for `m` where")


class Combined(Function):
    """Sums rows (N * k, D) by gates (N, k); order: (N * k,), the place of each row."""

    @staticmethod
    def forward(ctx, rows, order, gates):
        ctx.save_for_backward(rows, order, gates)
        weights = gates.reshape(-1)[order]
        count, k = gates.shape
        return rows.new_zeros(count, rows.shape[1]).index_add_(
            0, order // k, rows * weights[:, None]
        )

    @staticmethod
    def backward(ctx, grad_output):
        rows, order, gates = ctx.saved_tensors
        of_rows = grad_output[order // gates.shape[1]]
        dots = (of_rows * rows).sum(-1)
        of_gates = torch.zeros_like(dots).index_copy(0, order, dots).view(gates.shape)
        return of_rows * gates.reshape(-1)[order][:, None], None, of_gates


class CombinedUndocumented(Combined):
    """Sums rows by gates."""


def test_sizes_that_are_products_of_others_change_with_them_or_not_at_all(
    probed: Callable[..., Outcome],
) -> None:
    order = torch.tensor([4, 0, 3, 1, 5, 2])
    given = (torch.randn(6, 2), order, torch.rand(3, 2) + 0.5)  # as many columns by accident
    assert told(probe(probed, "GL706", Combined, *given)) == []
    assert told(probe(probed, "GL706", CombinedUndocumented, *given)) != []


class ByNorm(Function):
    @staticmethod
    def forward(ctx, v, size):
        ctx.save_for_backward(v, size)
        return v * (size / v.pow(2).sum((0, 2), keepdim=True).sqrt()) if v.dim() > 2 else v * size

    @staticmethod
    def backward(ctx, grad_output):
        v, size = ctx.saved_tensors
        if v.dim() < 3:
            return grad_output[0] * size[0] * 2, (grad_output * v).sum((0, 2), keepdim=True)
        norm = v.pow(2).sum((0, 2), keepdim=True).sqrt()
        grad_size = (grad_output * v / norm).sum((0, 2), keepdim=True)
        return size / norm * (grad_output - v / norm * grad_size), grad_size


def test_an_axis_less_that_another_tensor_brings_back(probed: Callable[..., Outcome]) -> None:
    """Without its first axis, ``v`` is broadcast with ``size``, which has it: by accident."""
    v, size = torch.randn(3, 4, 2), torch.rand(1, 4, 1) + 0.5
    assert told(probe(probed, "GL706", ByNorm, v, size)) == []


class FirstTwo(Function):
    """Reads two columns of ``at``, whatever it has."""

    @staticmethod
    def forward(ctx, x, at):
        ctx.save_for_backward(x, at)
        return x[:, None] * at[:, 0] + x[:, None] ** 2 * at[:, 1]

    @staticmethod
    def backward(ctx, grad_output):
        x, at = ctx.saved_tensors
        first, second = at.unbind(1) if at.shape[1] == 2 else (at[:, 0], at[:, 1])
        grad_x = (grad_output * (first + 2 * x[:, None] * second)).sum(1)
        columns = [(grad_output * x[:, None] ** power).sum(0) for power in (1, 2)]
        return grad_x, torch.stack(columns, 1)


def test_a_fixed_size_that_forward_does_not_check(probed: Callable[..., Outcome]) -> None:
    """The gradient has two columns at every size of the last axis: told, and no alarm."""
    outcome = probe(probed, "GL706", FirstTwo, torch.randn(5), torch.randn(3, 2))
    assert outcome.verdict == "pass"
    assert {finding.severity for finding in outcome.findings} == {"info"}


class Ends(Function):
    """Differences between the ends of edges."""

    @staticmethod
    def forward(ctx, x, edges):
        ctx.save_for_backward(x, edges)
        return (x[edges[0]] - x[edges[1]]).pow(2).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, edges = ctx.saved_tensors
        first, second = edges
        part = 2 * grad_output * (x[first] - x[second])
        return torch.zeros_like(x).index_add(0, first, part).index_add(0, second, -part), None


def test_two_rows_that_backward_unpacks(probed: Callable[..., Outcome]) -> None:
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 2]])
    outcome = probe(probed, "GL706", Ends, torch.randn(6, 3), edges)
    assert outcome.verdict == "pass"
    assert {finding.severity for finding in outcome.findings} == {"info"}


class OfAnImage(Function):
    """Rows of an image at positions; images of one row are beyond it."""

    @staticmethod
    def forward(ctx, image, at):
        ctx.save_for_backward(image, at)
        row = at.detach().floor().clamp(0, image.shape[0] - 2).long()
        return image[row] + (at - row)[:, None] * (image[row + 1] - image[row])

    @staticmethod
    def backward(ctx, grad_output):
        image, at = ctx.saved_tensors
        row = at.floor().clamp(0, image.shape[0] - 2).long()
        part = (at - row)[:, None]
        grad_image = torch.zeros_like(image)
        grad_image.index_add_(0, row, grad_output * (1 - part))
        grad_image.index_add_(0, row + 1, grad_output * part)
        return grad_image, (grad_output * (image[row + 1] - image[row])).sum(1)


def test_equal_sizes_by_chance(probed: Callable[..., Outcome]) -> None:
    """4 rows and 4 positions: one row raises, one position does not."""
    image, at = torch.randn(4, 5), torch.tensor([0.3, 1.4, 2.2, 2.6])
    outcome = probe(probed, "GL706", OfAnImage, image, at)
    assert outcome.verdict == "pass"
    assert {finding.severity for finding in outcome.findings} == {"info"}


class Taps(Function):
    """A filter of three taps; forward takes more of them, and reads the first three."""

    @staticmethod
    def forward(ctx, x, taps):
        ctx.save_for_backward(x, taps)
        return taps[0] * x + taps[1] * x.roll(1, 1) + taps[2] * x.roll(2, 1)

    @staticmethod
    def backward(ctx, grad_output):
        x, taps = ctx.saved_tensors
        grad_x = sum(taps[k] * grad_output.roll(-k, 1) for k in range(3))
        return grad_x, torch.stack([(grad_output * x.roll(k, 1)).sum() for k in range(3)])


class TwoTaps(Function):
    """A filter of two taps, of which an odd size makes three."""

    @staticmethod
    def forward(ctx, x, taps):
        ctx.save_for_backward(x, taps)
        return taps[0] * x + taps[1] * x.roll(1, 1)

    @staticmethod
    def backward(ctx, grad_output):
        x, taps = ctx.saved_tensors
        grad_x = taps[0] * grad_output + taps[1] * grad_output.roll(-1, 1)
        return grad_x, torch.stack([(grad_output * x.roll(k, 1)).sum() for k in range(2)])


class TapsOfOtherRows(Taps):
    """Its gradient with respect to ``x`` is wrong beyond six columns."""

    @staticmethod
    def backward(ctx, grad_output):
        grad_x, grad_taps = Taps.backward(ctx, grad_output)
        return torch.where(torch.arange(grad_x.shape[1]) < 6, grad_x, 0.0), grad_taps


class GradientBeyond(Taps):
    """Gives taps that forward does not read a gradient."""

    @staticmethod
    def backward(ctx, grad_output):
        x, taps = ctx.saved_tensors
        grad_x, _ = Taps.backward(ctx, grad_output)
        sums = [(grad_output * x.roll(k, 1)).sum() for k in range(len(taps))]
        return grad_x, torch.stack(sums)


class Blocks(Function):
    """Sums of pairs; what is left over is left out, by backward too."""

    @staticmethod
    def forward(ctx, x):
        return x[: len(x) // 2 * 2].view(-1, 2).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.repeat_interleave(2)


class Cropped(Function):
    """The first three of what the sample has more of; backward knows the sample's size only."""

    @staticmethod
    def forward(ctx, x):
        return x[:3] ** 1

    @staticmethod
    def backward(ctx, grad_output):
        return torch.cat([grad_output, grad_output.new_zeros(2)])


@pytest.mark.parametrize(("op", "taps"), [(Taps, 3), (GradientBeyond, 3), (TwoTaps, 2)])
def test_a_length_of_its_own_is_information(
    probed: Callable[..., Outcome], op: Any, taps: int
) -> None:
    outcome = probe(probed, "GL706", op, matrix(), torch.randn(taps))
    (finding,) = outcome.findings
    assert finding.grounds.explained == "unread"
    assert "`taps` has shape" in finding.message
    assert "`x`" not in finding.message.split("where")[1]


def test_a_length_of_its_own_excuses_no_other_axis(probed: Callable[..., Outcome]) -> None:
    """Three columns and three taps are changed together, and then apart."""
    found = probe(probed, "GL706", TapsOfOtherRows, matrix(4, 3), torch.randn(3)).findings
    blamed = [item for item in found if item.grounds.explained is None]
    assert [item.input for item in blamed] == ["x"]


class Turned(Function):
    """A quaternion with a scale, of which forward takes the first three components."""

    @staticmethod
    def forward(ctx, q, p):
        ctx.save_for_backward(q, p)
        return torch.linalg.cross(q[..., :3], p, dim=-1)

    @staticmethod
    def backward(ctx, grad_output):
        q, p = ctx.saved_tensors
        grad_q = torch.linalg.cross(p, grad_output, dim=-1)
        grad_q = torch.cat((grad_q, grad_q.new_zeros((*q.shape[:-1], 2))), -1)
        return grad_q, torch.linalg.cross(grad_output, q[..., :3], dim=-1)


@pytest.mark.parametrize(
    ("origin", "severity"), [("inferred", "warning"), ("sample_inputs", "error")]
)
def test_a_guessed_length_is_a_warning(
    subject: Callable[..., Subject], origin: str, severity: str
) -> None:
    made = subject(Turned, torch.randn(5, 5), torch.randn(5, 3))
    made = Subject(made.op, replace(made.sample, origin=origin), made.settings)
    (finding,) = by_code("GL706").probe(made).findings
    assert "backward raises RuntimeError where `q` has shape" in finding.message
    assert finding.severity == severity


@pytest.mark.parametrize(("op", "size"), [(Blocks, 4), (Cropped, 5)])
def test_what_forward_leaves_out_of_more_excuses_nothing(
    probed: Callable[..., Outcome], op: Any, size: int
) -> None:
    outcome = probe(probed, "GL706", op, torch.randn(size))
    assert [finding.grounds.explained for finding in outcome.findings] == [None]
    assert "backward raises" in outcome.findings[0].message


class AroundAnAxis(torch.autograd.Function):
    """Vectors of three numbers; inside of forward, a single number meets all three."""

    AXIS = torch.tensor([0.2, -0.5, 0.7], dtype=torch.float64)

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        size = v.square().sum(-1, keepdim=True)
        return torch.cat(
            (size, torch.linalg.cross(*torch.broadcast_tensors(v, size * AroundAnAxis.AXIS))), -1
        )

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        size = v.square().sum(-1, keepdim=True)
        rest = torch.linalg.cross(*torch.broadcast_tensors(size * AroundAnAxis.AXIS, grad[..., 1:]))
        along = torch.linalg.cross(*torch.broadcast_tensors(grad[..., 1:], v)) * AroundAnAxis.AXIS
        whole = grad[..., :1] + along.sum(-1, keepdim=True)
        return (rest + 2 * v * whole).sum_to_size(v.shape)


def test_size_one_in_place_of_a_constant_is_information(probed: Callable[..., Outcome]) -> None:
    """Forward takes no other size but three, so one is taken by accident."""
    vectors = torch.tensor([[0.3, -1.2, 0.8], [1.1, 0.4, -0.6]], dtype=torch.float64)
    outcome = probe(probed, "GL706", AroundAnAxis, vectors)
    seen = [(item.cause, item.grounds.explained) for item in outcome.findings]
    assert seen == [("size-one", "broadcast")]


class Convolved(Function):
    """A filter by FFT over twice as many points as there are: of a filter that is longer than
    these, nothing more is read, and its gradient has no more."""

    @staticmethod
    def forward(ctx, u, k):
        n = 2 * u.shape[-1]
        of_u, of_k = torch.fft.rfft(u, n=n), torch.fft.rfft(k, n=n)
        ctx.save_for_backward(of_u, of_k)
        ctx.sizes = u.shape[-1], k.shape[-1]
        return torch.fft.irfft(of_u * of_k, n=n)[..., : u.shape[-1]]

    @staticmethod
    def backward(ctx, grad_output):
        of_u, of_k = ctx.saved_tensors
        size, taps = ctx.sizes
        of_g = torch.fft.rfft(grad_output, n=2 * size)
        grad_u = torch.fft.irfft(of_g * of_k.conj(), n=2 * size)[..., :size]
        return grad_u, torch.fft.irfft(of_g * of_u.conj(), n=2 * size)[..., :taps]


class ConvolvedInFull(Convolved):
    """Reads every tap, whatever their number; backward returns as many as there are points."""

    @staticmethod
    def forward(ctx, u, k):
        ctx.save_for_backward(u, k)
        return u * k.sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        u, k = ctx.saved_tensors
        of_tap = (grad_output * u).sum(-1, keepdim=True)
        return grad_output * k.sum(-1, keepdim=True), of_tap.expand_as(k)[..., : 2 * u.shape[-1]]


@pytest.mark.parametrize(("op", "explained"), [(Convolved, "unread"), (ConvolvedInFull, None)])
def test_a_filter_that_is_longer_than_what_it_filters(
    probed: Callable[..., Outcome], op: Any, explained: str | None
) -> None:
    found = probe(probed, "GL706", op, torch.randn(3, 4), torch.randn(3, 5)).findings
    shrunk = [item for item in found if "`u` has shape [3, 1]" in item.message]
    assert [item.grounds.explained for item in shrunk] == [explained]


class Neighbours(Function):
    """Neighbours along time, the ends repeated; right for two steps or more."""

    @staticmethod
    def forward(ctx, x):
        return x + torch.cat([x[:, 1:], x[:, -1:]], 1)

    @staticmethod
    def backward(ctx, g):
        if g.shape[1] == 1:
            return g.clone()
        return torch.cat([g[:, :1], g[:, 1:-1] + g[:, :-2], 2 * g[:, -1:] + g[:, -2:-1]], 1)


class NeighboursOfTwo(Neighbours):
    """Neighbours in series (batch, time, channels), time > 1."""


@pytest.mark.parametrize(("op", "verdict"), [(Neighbours, "fail"), (NeighboursOfTwo, "pass")])
def test_sizes_below_the_documented_least_are_not_tried(
    probed: Callable[..., Outcome], op: Any, verdict: str
) -> None:
    x = torch.randn(2, 5, 2, dtype=torch.float64)
    assert probed(by_code("GL401"), op, x).verdict == "pass"
    assert probed(by_code("GL706"), op, x).verdict == verdict


class LeastSquares(Function):
    """x = pinv(A) b for A (m, n) and b (m,); right where A has full column rank."""

    @staticmethod
    def forward(ctx, A, b):
        inverse = torch.linalg.pinv(A)
        ctx.save_for_backward(A, b, inverse)
        return inverse @ b

    @staticmethod
    def backward(ctx, grad_output):
        A, b, inverse = ctx.saved_tensors
        x = inverse @ b
        of_b = inverse.mT @ grad_output
        rest = b - A @ x
        return rest[:, None] * (inverse @ of_b) - of_b[:, None] * x, of_b


class LeastSquaresOfTall(LeastSquares):
    """x = pinv(A) b for A (m, n), m >= n, and b (m,)."""


@pytest.mark.parametrize(("op", "verdict"), [(LeastSquares, "fail"), (LeastSquaresOfTall, "pass")])
def test_axes_that_are_no_longer_than_others(
    probed: Callable[..., Outcome], op: Any, verdict: str
) -> None:
    A, b = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    assert probed(by_code("GL401"), op, A, b).verdict == "pass"
    assert probed(by_code("GL706"), op, A, b).verdict == verdict


class Lifted(Function):
    """What is even less what is odd, and that of the next pair; forward needs pairs."""

    sign = 1

    @staticmethod
    def forward(ctx, x):
        even, odd = x[..., ::2], x[..., 1::2]
        return even - odd + odd.roll(-1, -1)

    @classmethod
    def backward(cls, ctx, grad_output):
        of_odd = grad_output.roll(cls.sign, -1) - grad_output
        return torch.stack([grad_output, of_odd], -1).flatten(-2)


class RollsForward(Lifted):
    """Two pairs that are rolled forward or backward are the same."""

    sign = -1


class BinsCounted(Function):
    """Half of the squares of the bins of a real series, weighted; ``weight`` has one for each."""

    last = staticmethod(lambda n: 1.0 if n % 2 == 0 else 2.0)

    @staticmethod
    def forward(ctx, x, weight):
        spectrum = torch.fft.rfft(x)
        if spectrum.shape[-1] != len(weight):
            raise ValueError("a weight for each bin")
        ctx.save_for_backward(spectrum, weight)
        ctx.n = x.shape[-1]
        return torch.fft.irfft(spectrum * weight, n=ctx.n)

    @classmethod
    def backward(cls, ctx, grad_output):
        spectrum, weight = ctx.saved_tensors
        of_spectrum = torch.fft.rfft(grad_output)
        count = torch.full_like(weight, 2.0)
        count[0], count[-1] = 1.0, cls.last(ctx.n)
        grad_weight = (spectrum.conj() * of_spectrum).real * count / ctx.n
        grad_x = torch.fft.irfft(of_spectrum * weight, n=ctx.n)
        return grad_x, grad_weight.reshape(-1, len(weight)).sum(0)


class LastBinOnce(BinsCounted):
    last = staticmethod(lambda n: 1.0)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (Lifted, RollsForward, "wrong gradient for `x` where `x` has shape [3, 262]"),
        (BinsCounted, LastBinOnce, "wrong gradient for `weight` where `x` has shape [3, 5]"),
    ],
)
def test_other_sizes_where_odd_ones_are_refused(
    probed: Callable[..., Outcome], right: Any, wrong: Any, message: str
) -> None:
    args = [matrix()[:3, :4].contiguous()]
    if right is BinsCounted:
        args.append(torch.tensor([0.5, -1.2, 0.8], dtype=torch.float64))
    assert probed(by_code("GL401"), wrong, *args).verdict == "pass"
    outcome = probe(probed, "GL706", right, *args)
    assert (outcome.verdict, outcome.findings) == ("pass", [])
    (finding,) = probe(probed, "GL706", wrong, *args).findings
    assert (finding.severity, finding.message) == ("error", message)
    assert (finding.cause == "odd-size") == (right is BinsCounted)

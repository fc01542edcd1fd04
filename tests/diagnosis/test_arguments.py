"""Factors that are arguments, sizes and counts; repeated indices; bounds that are arguments."""

from __future__ import annotations

import pytest
import torch

from gradlint.checking.examine import examine
from gradlint.model.events import Found
from gradlint.model.report import Finding
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.targets.build import from_object


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(700 + seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def finding(op, *args) -> Finding | None:
    """The first finding of GL401."""
    events = []
    given = tuple(
        a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in args
    )
    examine(
        from_object(op),
        [Sample("s", "given", given)],
        Settings(seed=1, select=("GL401",)),
        events.append,
    )
    return next((event.finding for event in events if isinstance(event, Found)), None)


def scaled_by(forward, factor):
    """An op that computes ``forward``, with a gradient that is ``factor`` times the right one."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            ctx.save_for_backward(x)
            ctx.rest = rest
            return forward(x, *rest)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                leaf = x.detach().requires_grad_()
                (right,) = torch.autograd.grad(forward(leaf, *ctx.rest), leaf, g)
            return right * factor(x, *ctx.rest), *(None for _ in ctx.rest)

    return Op


MASK = torch.tensor([True, False, True, True, False, True, True])


@pytest.mark.parametrize(
    ("forward", "factor", "args", "shown"),
    [
        (lambda x, a: -a * x.sin(), lambda x, a: -1 / a, (0.37,), "times -args[0] agrees"),
        (lambda x, a: x.sin() / a, lambda x, a: a, (0.37,), "times 1/args[0] agrees"),
        (lambda x, a: x.sin() * a**2, lambda x, a: 1 / a, (0.37,), "times args[0] agrees"),
        (lambda x, a: x.sin() * a, lambda x, a: 1 / a, (2,), "times 2 agrees"),
        (lambda x: x.square().mean(0), lambda x: x.shape[0], (), "times 1/x.shape[0] agrees"),
        (lambda x: x.square().mean(), lambda x: x.numel(), (), "times 1/x.numel() agrees"),
        (
            lambda x, m: (x * m[:, None]).sum() / m.sum(),
            lambda x, m: m.sum(),
            (MASK,),
            "times 1/args[0].sum() agrees",
        ),
        (lambda x: x.sin(), lambda x: 0.7431, (), "times 1.3457"),
    ],
)
def test_a_factor_is_named_as_what_it_is(forward, factor, args, shown):
    found = finding(scaled_by(forward, factor), draw(7, 3), *args)
    assert found.cause == "scaled"
    # ``*rest`` is no differentiable input, so its names are those of forward's parameters.
    assert shown in found.cause_text.replace("rest[", "args[")


class LacksWeight(torch.autograd.Function):
    """The gradient of x lacks the factor weight."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.sin() * weight

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return g * x.cos(), (g * x.sin()).sum(0)


def test_a_factor_that_is_another_input():
    found = finding(LacksWeight, draw(4, 3), draw(3, seed=1))
    assert (found.cause, found.input) == ("scaled", "x")
    assert "times weight agrees" in found.cause_text
    assert found.help == "multiply the gradient of `x` by weight"


class Rows(torch.autograd.Function):
    """x[index], whose backward assigns where it should add."""

    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(x, index)
        return x[index].sin()

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        found = torch.zeros_like(x)
        found[index] = g * x[index].cos()
        return found, None


class RowsLacking(Rows):
    """The same, with another fault: one row that is named once is wrong, too."""

    @staticmethod
    def backward(ctx, g):
        found = Rows.backward(ctx, g)[0].clone()
        found[0] *= 2
        return found, None


INDEX = torch.tensor([2, 4, 2, 0, -1])


def test_a_repeated_index_is_named():
    found = finding(Rows, draw(6, 2), INDEX)
    assert found.cause == "repeated-index"
    assert "only what `index` names more than once is wrong in `x`: index 2" in found.cause_text
    assert "accumulate=True" in found.help


def test_a_repeated_index_is_named_among_thousands():
    index = torch.arange(2000) // 2 * 2  # half of the rows twice: more choices than floats count
    found = finding(Rows, draw(2000, 1), index)
    assert found.cause == "repeated-index"


class Segments(torch.autograd.Function):
    """x over the sum of its segment, whose backward assigns where it should add."""

    @staticmethod
    def forward(ctx, x, segment):
        e = x.exp()
        y = e / e.new_zeros(4).index_add(0, segment, e)[segment]
        ctx.save_for_backward(y, segment)
        return y

    @staticmethod
    def backward(ctx, g):
        y, segment = ctx.saved_tensors
        return Segments.within(y, g * y, segment, y.new_zeros(4).index_put), None

    @staticmethod
    def within(y, gy, segment, put):
        return gy - y * put((segment,), gy)[segment]


class BlockOfSegments(Segments):
    """The same, added up; but the last two elements are skipped."""

    @staticmethod
    def backward(ctx, g):
        y, segment = ctx.saved_tensors
        found = g * y - y * y.new_zeros(4).index_add(0, segment, g * y)[segment]
        return torch.cat([found[:-2], 0 * found[-2:]]), None


def test_what_shares_its_index_is_named():
    found = finding(Segments, draw(7), torch.tensor([1, 0, 2, 0, 3, 1, 1]))
    assert found.cause == "repeated-index"
    assert "(line " in found.cause_text  # forward's own operation is named


def test_of_three_elements_a_repeated_index_says_more_than_a_block():
    found = finding(Segments, draw(3), torch.tensor([1, 0, 0]))
    assert found.cause == "repeated-index"
    said = "only what shares its `segment` with others is wrong in `x`: indices 1, 2 along axis 0"
    assert said in found.cause_text
    assert "index_put_(…, accumulate=True), in place" in found.help


def test_a_block_is_one_where_indices_repeat_elsewhere():
    found = finding(BlockOfSegments, draw(7), torch.tensor([1, 0, 0, 2, 2, 1, 1]))
    assert found.cause == "block"


def test_a_count_for_each_element_is_a_factor():
    def mean(x, segment):
        sums = x.new_zeros(4).index_add(0, segment, x.sin())
        return sums / segment.bincount(minlength=4).clamp(min=1)

    class Mean(Segments):
        @staticmethod
        def forward(ctx, x, segment):
            ctx.save_for_backward(x, segment)
            return mean(x, segment)

        @staticmethod
        def backward(ctx, g):
            x, segment = ctx.saved_tensors
            return g[segment] * x.cos(), None

    found = finding(Mean, draw(7), torch.tensor([1, 0, 2, 0, 3, 1, 1]))
    assert found.cause == "scaled"
    assert "segment.bincount()[segment]" in found.cause_text


class OverKept(torch.autograd.Function):
    """A mean over the labels that count; backward divides by the number of all."""

    @staticmethod
    def forward(ctx, x, target, skipped=-100):
        kept = (target != skipped)[:, None]
        ctx.save_for_backward(x, kept)
        return (x.sin() * kept).sum() / kept.sum()

    @staticmethod
    def backward(ctx, g):
        x, kept = ctx.saved_tensors
        return g * x.cos() * kept / len(x), None, None


@pytest.mark.parametrize(("skipped", "args"), [(-100, ()), (3, (3,))])
def test_a_normaliser_of_what_counts_is_named(skipped, args):
    target = torch.tensor([1, skipped, 0, 4, 2, skipped, 5, 7, 1])
    found = finding(OverKept, draw(9, 2), target, *args)
    assert found.cause == "scaled"
    assert "times 9/(target != skipped).sum() agrees" in found.cause_text
    assert "7 of 9 elements are other than `skipped` in `target`" in found.cause_text


def test_a_normaliser_is_not_named_where_all_count():
    found = finding(scaled_by(lambda x, t: x.sin(), lambda x, t: 7 / 9), draw(9, 2), INDEX)
    assert "times 9/7 agrees" in found.cause_text


def test_an_index_is_not_blamed_for_rows_that_it_names_once():
    found = finding(RowsLacking, draw(6, 2), INDEX)
    assert found.cause != "repeated-index"
    once = finding(Rows, draw(6, 2), torch.tensor([2, 4, 0, 1]))
    assert once is not None
    assert once.message.startswith("wrong gradient for `x` where `index` repeats")


class Clamped(torch.autograd.Function):
    """Not zero where forward clamps."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x.clamp(eps, 1 - eps).log()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / x.clamp(ctx.eps, 1 - ctx.eps), None


def test_two_bounds_that_are_arguments():
    x = torch.tensor([0.3, 0.02, 0.96, 0.07, 0.99, 0.6, 0.92, 0.04], dtype=torch.float64)
    found = finding(Clamped, x, 0.05)
    assert found.cause == "derivative-left-out"
    assert "the derivative of `x.clamp(eps, 1 - eps)` (line " in found.cause_text
    assert " with respect to `x` as 1: " in found.cause_text
    assert "where `x` is outside of a range" in found.cause_text
    assert "(`eps` is 0.05)" in found.cause_text
    assert "(1-eps is 0.95)" in found.cause_text


class Averaged(torch.autograd.Function):
    """The mean or the sum of x², whose backward forgets to divide by the number of elements."""

    @staticmethod
    def forward(ctx, x, reduction="mean"):
        ctx.save_for_backward(x)
        return (x * x).mean() if reduction == "mean" else (x * x).sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x, None


@pytest.mark.parametrize("args", [(), ("mean",)])
def test_a_size_is_the_factor_for_one_reduction_only(args):
    found = finding(Averaged, draw(3, 5), *args)
    assert found.help == "multiply the gradient of `x` by 1/x.numel() where reduction='mean'"


def test_a_factor_that_is_no_size_holds_for_every_reduction():
    class Halved(Averaged):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x / x.numel(), None

    assert finding(Halved, draw(3, 5)).help == "multiply the gradient of `x` by 2"

"""Documentation of a Function tells of the arguments that a module hands on to it as they are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs.described import said_of_arguments
from gradlint.inputs.handed_on import handed_on, prose_about, texts_of_callees
from gradlint.targets.build import from_object


class Total(Function):
    """The sum over each sequence, squared: rows (B, T, D), lengths (B,) in 1..T -> (B, D).

    An empty sequence would count as one that is not.
    """

    @staticmethod
    def forward(ctx, r, lengths):
        within = torch.arange(r.shape[1]) < lengths.clamp(min=1)[:, None]
        ctx.save_for_backward(r, lengths)
        return (r.square() * within[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        r, lengths = ctx.saved_tensors
        within = torch.arange(r.shape[1]) < lengths[:, None]
        return 2 * r * within[..., None] * g[:, None], None


class TotalUnmasked(Total):
    """Rows (B, T, D), lengths (B,) in 1..T -> (B, D), with a gradient of items beyond the end."""

    @staticmethod
    def backward(ctx, g):
        r, _ = ctx.saved_tensors
        return 2 * r * g[:, None], None


class Pooled(nn.Module):
    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        return Total.apply(rows, lengths)


class PooledWrongly(nn.Module):
    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        return TotalUnmasked.apply(rows, lengths)


class Projected(nn.Module):
    """What it hands on under the name of an argument is something else."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)

    def forward(self, rows: Tensor, lengths: Tensor) -> Tensor:
        rows = self.project(rows)[None]
        return Total.apply(rows, lengths)


def exchanged(lengths: Tensor, r: Tensor) -> Tensor:
    """Its names are those of other arguments there."""
    return Total.apply(lengths, r)


def test_what_is_handed_on_as_it_is() -> None:
    both = frozenset({"rows", "lengths"})
    assert handed_on(from_object(Pooled)) == [(Total, both)]
    assert handed_on(from_object(Projected)) == [(Total, frozenset({"lengths"}))]
    assert handed_on(from_object(exchanged)) == [(Total, frozenset())]
    assert handed_on(from_object(Total)) == []
    assert "in 1..T" in prose_about(from_object(Projected), "lengths")
    assert "in 1..T" not in prose_about(from_object(Projected), "rows")


@pytest.mark.parametrize("seed", range(3))
def test_shapes_and_values_are_those_that_are_documented(seed: int) -> None:
    sample = infer(from_object(Pooled), seed)[0]
    rows, lengths = sample.args
    assert rows.dim() == 3
    assert lengths.shape == rows.shape[:1]
    assert 1 <= int(lengths.min()) <= int(lengths.max()) == rows.shape[1]


@pytest.mark.parametrize(("op", "wrong"), [(Pooled, set()), (PooledWrongly, {"rows"})])
def test_no_length_is_zero_where_documentation_begins_at_one(op, wrong) -> None:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL0", "GL401"]).targets
    assert {f.input for f in report.findings if f.severity != "info"} == wrong
    assert not any("is 0" in sample.label for sample in report.samples)


# -- plain functions -----------------------------------------------------------------------------


def pulled(inp, grid):
    """Values of an image at places.

    inp: (B, C, *spatial) tensor
    grid: (B, *spatial, D) tensor, positive
    """
    assert inp.dim() == grid.dim() == grid.shape[-1] + 2 > 3
    assert len(inp) == len(grid)
    return inp.flatten(2).sum(-1) * grid.square().flatten(1).sum(-1)[:, None]


class Pull(Function):
    @staticmethod
    def forward(ctx, input, grid):
        ctx.save_for_backward(input, grid)
        return pulled(input, grid)

    @staticmethod
    def backward(ctx, g):
        input, grid = ctx.saved_tensors
        rest = (1,) * (input.dim() - 2)
        weights = grid.square().flatten(1).sum(-1)[:, None]
        grad_input = (g * weights).view(*g.shape, *rest).expand_as(input)
        grad_grid = 2 * grid * (g * input.flatten(2).sum(-1)).sum(-1).view(-1, 1, *rest)
        return grad_input, grad_grid


class PullOfFirst(Pull):
    """Its gradient for the grid leaves all channels out but the first."""

    @staticmethod
    def backward(ctx, g):
        input, grid = ctx.saved_tensors
        rest = (1,) * (input.dim() - 2)
        first = (g * input.flatten(2).sum(-1))[:, 0]
        return Pull.backward(ctx, g)[0], 2 * grid * first.view(-1, 1, *rest)


def exchanging(inp, grid):
    return pulled(grid=inp, inp=grid)


def changing(inp, grid):
    inp = inp[None]
    return pulled(inp, grid)


def of_another(grid, other):
    return pulled(grid, 2 * other)


def twice(inp, grid):
    return pulled(grid, grid)


def test_what_plain_functions_say_is_said_in_the_names_of_the_op() -> None:
    ((text, names),) = texts_of_callees(from_object(Pull))
    assert names == {"input", "grid"}
    assert "input: (B, C, *spatial) tensor" in text
    ((text, _),) = texts_of_callees(from_object(exchanging))
    assert "grid: (B, C, *spatial) tensor" in text
    assert "inp: (B, *spatial, D) tensor, positive" in text
    assert [names for _, names in texts_of_callees(from_object(changing))] == [{"grid"}]
    # What is called `grid` there is something else, and what is given twice is two things there.
    assert texts_of_callees(from_object(of_another)) == []
    assert texts_of_callees(from_object(twice)) == []
    assert texts_of_callees(from_object(torch.nn.functional.softplus)) == []


@pytest.mark.parametrize(("op", "verdict"), [(Pull, "pass"), (PullOfFirst, "fail")])
def test_inputs_are_those_that_a_plain_function_tells_of(op: type[Function], verdict: str) -> None:
    report = gradlint.check(op, order=1, seed=1, select=["GL4"])
    (target,) = report.targets
    shapes = {item.name: item.shape for item in target.samples[0].args}
    assert len(shapes["input"]) == len(shapes["grid"]) == 4
    assert shapes["grid"][-1] == 2
    assert target.verdict == verdict
    assert {item.input for item in target.findings} == ({"grid"} if verdict == "fail" else set())


# -- under other names ---------------------------------------------------------------------------


class Smoothed(Function):
    """A running mean over time; x (B, F, T), s (F,)."""

    @staticmethod
    def forward(ctx, x, s):
        m = [x[..., 0]]
        for t in range(1, x.shape[-1]):
            m.append(torch.lerp(m[-1], x[..., t], s))
        found = torch.stack(m, -1)
        ctx.save_for_backward(x, s, found)
        return found

    @staticmethod
    def backward(ctx, g):
        x, s, m = ctx.saved_tensors
        gx, gs, carry = torch.empty_like(g), torch.zeros_like(s), torch.zeros_like(g[..., 0])
        for t in range(x.shape[-1] - 1, 0, -1):
            carry = carry + g[..., t]
            gx[..., t] = s * carry
            gs += (carry * (x[..., t] - m[..., t - 1])).sum(0)
            carry = (1 - s) * carry
        gx[..., 0] = g[..., 0] + carry
        return gx, gs


class Gained(nn.Module):
    def __init__(self, bands: int) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.full((bands,), 0.3))

    def forward(self, energy: Tensor) -> Tensor:
        return energy / (0.5 + Smoothed.apply(energy, self.rate).square())


def test_what_is_said_of_it_under_another_name() -> None:
    """Without a batch the gradient of the rate is the sum over the bands, which is not meant."""
    assert [names for _, names in texts_of_callees(from_object(Gained))] == [{"energy"}]
    assert said_of_arguments(from_object(Gained))["energy"].axes == ("B", "F", "T")
    (report,) = gradlint.check(Gained, seed=0, order=1, select=["GL0", "GL401", "GL706"]).targets
    assert infer(from_object(Gained), 0)[0].args[0].dim() == 3
    assert {f.input for f in report.findings if f.severity != "info"} == set()

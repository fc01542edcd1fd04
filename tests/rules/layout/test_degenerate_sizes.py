"""Sizes that forward runs out of are information; other faults at size 1 are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint
from gradlint.model.report import Finding

Function = torch.autograd.Function


def positions_of(count: int) -> torch.Tensor:
    return torch.arange(count)


class Interpolated(Function):
    """Linear interpolation of a table: of one entry there is no second one."""

    @staticmethod
    def cell(at: torch.Tensor, n: int) -> torch.Tensor:
        return at.floor().long().clamp(0, n - 2)

    @classmethod
    def weights(cls, at: torch.Tensor, n: int) -> torch.Tensor:
        i = cls.cell(at, n)
        t = (at - i)[:, None]
        low, high = ((positions_of(n) == k[:, None]).to(at.dtype) for k in (i, i + 1))
        return low * (1 - t) + high * t

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(table, at)
        i = Interpolated.cell(at, len(table))
        t = at - i
        return table[i] * (1 - t) + table[i + 1] * t

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        table, at = ctx.saved_tensors
        i = Interpolated.cell(at, len(table))
        slope = table[i + 1] - table[i]
        return g @ Interpolated.weights(at, len(table)), g * slope


class LastElementForgotten(Interpolated):
    """The same, wrong where the table has an odd number of entries."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        table_grad, at_grad = Interpolated.backward(ctx, g)
        if len(table_grad) % 2:
            table_grad[0] = 0.0
        return table_grad, at_grad


class SecondLast(Function):
    """Σ x + the last but one, by an index that a number tells."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.n = x.shape[-1]
        ctx.shape = x.shape
        place = min(max(7, 0), ctx.n - 2)
        return x.sum(-1) + x[..., place]

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        chosen = positions_of(ctx.n) == min(7, ctx.n - 2)
        return g[..., None] * (1.0 + chosen.to(g.dtype)).expand(ctx.shape)


class SecondLastOrOnly(SecondLast):
    """The same with a branch for a single element, which backward lacks."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] == 1:
            ctx.n, ctx.shape = 1, x.shape
            return x.sum(-1) + x[..., -1]
        return SecondLast.forward(ctx, x)


class AndLast(SecondLast):
    """Σ x + the last: counted from the end at every size; backward lacks it at size 1."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.n, ctx.shape = x.shape[-1], x.shape
        return x.sum(-1) + x[..., -1]

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        chosen = (positions_of(ctx.n) == ctx.n - 1) & (ctx.n > 1)
        return g[..., None] * (1.0 + chosen.to(g.dtype)).expand(ctx.shape)


class Variance(Function):
    """Squares about the mean, over n - 1; backward divides by zero where n is one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        centred = x - x.mean(-1, keepdim=True)
        return centred.square().sum(-1) / max(x.shape[-1] - 1, 1)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        weight = g / torch.tensor(x.shape[-1] - 1.0, dtype=g.dtype)
        return 2 * weight[..., None] * (x - x.mean(-1, keepdim=True))


class BackwardClamps(Function):
    """2 x: it is backward that clamps to an empty range."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        n = g.shape[-1]
        first = torch.tensor([1]).clamp(1, n - 1)
        return 2 * g * (positions_of(n) != -first)


class NearestSolution(Function):
    """The x with A x = b and the least Σ q x² / 2 - p x, by Lagrange's multipliers; with more rows
    than columns there is none, and the matrix of the equations is singular."""

    @staticmethod
    def system(q: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        corner = a.new_zeros(len(a), len(a))
        return torch.cat([torch.cat([q.diag(), a.mT], 1), torch.cat([a, corner], 1)])

    @staticmethod
    def forward(ctx: Any, *given: torch.Tensor) -> torch.Tensor:
        q, p, a, b = given
        solution = torch.linalg.solve(NearestSolution.system(q, a), torch.cat([p, b]))
        ctx.save_for_backward(q, a, solution)
        return solution[: len(p)]

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        q, a, solution = ctx.saved_tensors
        n = len(q)
        right = torch.cat([g, g.new_zeros(len(a))])
        d = torch.linalg.solve(NearestSolution.system(q, a), right)
        grad_a = -torch.outer(solution[n:], d[:n]) - torch.outer(d[n:], solution[:n])
        return -d[:n] * solution[:n], d[:n], grad_a, d[n:]


class NearestSolutionOfOneRow(NearestSolution):
    """The same, wrong where there is one row: no matrix is singular there."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        *others, grad_b = NearestSolution.backward(ctx, g)
        return *others, grad_b * (1.0 if len(grad_b) > 1 else 0.5)


def leaf(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def program(seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((4,), (2, 4), (2,))
    p, a, b = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    q = torch.rand(4, generator=generator, dtype=torch.float64) + 0.5
    return tuple(item.requires_grad_() for item in (q, p, a, b))


def positions() -> torch.Tensor:
    return torch.tensor([0.3, 2.6, 1.4, 0.8, 2.2], dtype=torch.float64).requires_grad_()


def odd_sizes(op: Any, *args: Any) -> list[Finding]:
    return gradlint.check(op, [args], select=["GL706"], seed=1, order=1).findings


@pytest.mark.parametrize(
    ("op", "args"),
    [(Interpolated, (leaf(4), positions())), (SecondLast, (leaf(3, 4),))],
    ids=["clamp to an empty range", "an index below zero"],
)
def test_a_size_that_forward_runs_out_of_is_information(op: Any, args: Any) -> None:
    found = odd_sizes(op, *args)
    assert found
    assert {(item.severity, item.grounds.explained) for item in found} == {("info", "degenerate")}
    assert all("hardly meant" in item.evidence["info because"] for item in found)


def test_more_equations_than_unknowns_are_information() -> None:
    # Rounding decides whether elimination meets a zero, at which forward raises.
    found = [
        finding
        for seed in (12, 16, 18, 35)
        for finding in odd_sizes(NearestSolution, *program(seed))
    ]
    assert found
    assert {(item.severity, item.grounds.explained) for item in found} == {("info", "degenerate")}
    assert all("solves with a singular matrix" in item.evidence["info because"] for item in found)


@pytest.mark.parametrize(
    ("op", "args", "severity"),
    [
        (LastElementForgotten, (leaf(4), positions()), "error"),
        (SecondLastOrOnly, (leaf(3, 4),), "error"),
        (AndLast, (leaf(3, 4),), "error"),
        (BackwardClamps, (leaf(3, 4),), "error"),
        (NearestSolutionOfOneRow, program(0), "error"),
    ],
    ids=[
        "odd sizes",
        "a branch for it",
        "from the end at every size",
        "backward alone",
        "one equation",
    ],
)
def test_other_faults_there_are_found(op: Any, args: Any, severity: str) -> None:
    found = odd_sizes(op, *args)
    assert severity in {item.severity for item in found}
    assert None in {item.grounds.explained for item in found}


def test_a_division_by_zero_at_size_one_is_found() -> None:
    (finding,) = odd_sizes(Variance, leaf(3, 4))
    assert finding.grounds.explained is None
    assert finding.severity != "info"


class SoftTop(Function):
    """Shares of `k` in all: sigmoids, shifted so that their sum is `k`. Of fewer elements than `k`
    each is one, and backward divides by the slope that is left."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: int) -> torch.Tensor:
        low, high = x.amin(-1, keepdim=True) - 40, x.amax(-1, keepdim=True) + 40
        for _ in range(80):
            middle = (low + high) / 2
            over = torch.sigmoid(x - middle).sum(-1, keepdim=True) > k
            low, high = torch.where(over, middle, low), torch.where(over, high, middle)
        p = torch.sigmoid(x - (low + high) / 2)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        (p,) = ctx.saved_tensors
        slope = p * (1 - p)
        return slope * (g - (g * slope).sum(-1, keepdim=True) / slope.sum(-1, keepdim=True)), None


class SoftTopOfNine(SoftTop):
    """The same, wrong in longer rows."""

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[Any, ...]:
        grad_x, _ = SoftTop.backward(ctx, g)
        return grad_x * (2.0 if g.shape[-1] > 4 else 1.0), None


class SoftOrder(SoftTop):
    """The same, by a name that says nothing of a selection."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, order: int) -> torch.Tensor:
        return SoftTop.forward(ctx, x, order)


def test_more_is_selected_than_there_is() -> None:
    found = odd_sizes(SoftTop, leaf(3, 4), 2)
    assert {(item.severity, item.grounds.explained) for item in found} == {("info", "degenerate")}
    found = odd_sizes(SoftTopOfNine, leaf(3, 4), 2)
    assert "error" in {item.severity for item in found}
    found = odd_sizes(SoftOrder, leaf(3, 4), 2)
    assert {item.severity for item in found} == {"error"}


class AmongLevels(Function):
    """The level of occupation k between those of energies, 0 < k < n.

    energies: (B, n)
    k: (B,)
    """

    @staticmethod
    def forward(ctx: Any, energies: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        share = k[:, None] / energies.shape[1]
        ctx.save_for_backward(energies, share)
        return energies * (1 - share).clamp(min=0).log1p()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> Any:
        energies, share = ctx.saved_tensors
        left = (1 - share).clamp(min=0)
        by_share = -(g * energies / (1 + left)).sum(1) / energies.shape[1]
        return g * left.log1p() * (left / left), by_share


class AmongUnboundLevels(AmongLevels):
    """The same without a word on the occupation."""


class LinearPrediction(Function):
    """Prediction errors of r: (B, p + 1)."""

    @staticmethod
    def forward(ctx: Any, r: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(r)
        return r[:, :1] + r[:, 1:].square().sum(1, keepdim=True)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        (r,) = ctx.saved_tensors
        tail = 2 * g * r[:, 1:]
        return torch.cat([g + 0 * tail[:, :1], tail], 1)  # nothing is left of g without a tail


class Prediction(LinearPrediction):
    """Prediction errors of r: (B, p)."""


@pytest.mark.parametrize(
    ("op", "meant"),
    [
        (AmongLevels, False),
        (AmongUnboundLevels, True),
        (LinearPrediction, False),
        (Prediction, True),
    ],
)
def test_sizes_that_break_what_is_documented(op: type[Function], meant: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(3, 5, generator=generator, dtype=torch.float64).requires_grad_()
    k = torch.tensor([1.2, 2.1, 3.4], dtype=torch.float64).requires_grad_()
    inputs = (x, k) if issubclass(op, AmongLevels) else (x,)
    (report,) = gradlint.check(op, [inputs], seed=0, order=1, select=["GL706"]).targets
    assert any(f.severity != "info" for f in report.findings) is meant

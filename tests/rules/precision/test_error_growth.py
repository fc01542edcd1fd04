"""GL801: errors that grow with the length of a sum."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from gradlint.experiments.precision import error_growth
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.numerics import timing as _timing
from gradlint.rules.precision.low_precision_gradient import RULE
from gradlint.targets.build import from_object


def probed(op: Any, dtype: torch.dtype, *shapes: tuple[int, ...]) -> Outcome:
    generator = torch.Generator().manual_seed(0)
    values = tuple(
        torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for shape in shapes
    )
    return RULE.probe(Subject(from_object(op), Sample("s", "given", values), Settings(seed=0)))


class InFloat32(Function):
    """x + bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        return x + bias

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        return g, g.sum(0)


class RowByRow(InFloat32):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros_like(g[0])
        for row in g:
            total = total + row
        return g, total


class RowByRowInFloat32(InFloat32):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros_like(g[0]).float()
        for row in g:
            total = total + row
        return g, total.to(g.dtype)


def test_a_sum_that_stands_still() -> None:
    outcome = probed(RowByRow, torch.bfloat16, (6, 4), (4,))
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.severity, finding.input) == ("fail", "warning", "bias")
    assert finding.cause == "low-precision"
    assert finding.evidence["size"] == 1024
    assert finding.evidence["relative_error"] > 0.2 > finding.evidence["allowed"]
    assert finding.evidence["at the sample"] < 0.02


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("op", [InFloat32, RowByRowInFloat32])
def test_sums_in_float32_pass(op: Any, dtype: torch.dtype) -> None:
    outcome = probed(op, dtype, (6, 4), (4,))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


@pytest.mark.parametrize(("seconds", "stalls"), [(0.15, 1), (0.15, 2), (0.15, 10**6), (3.0, 1)])
def test_sums_are_left_out_where_calls_are_slow_and_not_where_one_stalls(
    monkeypatch: pytest.MonkeyPatch, seconds: float, stalls: int
) -> None:
    """On a clock of its own, that goes on in forward."""
    now = 0.0

    class Slow(RowByRow):
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
            nonlocal now
            if len(x) > 1000:
                Slow.calls += 1
                now += seconds * (Slow.calls <= stalls)
            return x + bias

    monkeypatch.setattr(_timing, "had_seconds", lambda: now)
    outcome = probed(Slow, torch.bfloat16, (6, 4), (4,))
    if stalls < 3 and seconds < 1:
        assert (outcome.verdict, outcome.note) == ("fail", "")
    else:
        told = f"sums of 1024 are left out: a call takes {seconds:.2g} s"
        assert (outcome.verdict, outcome.note) == ("pass", told)


class OneByOne(InFloat32):
    """x + bias, with one bias for all, whose gradient has one running sum over all elements."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(())
        for element in g.detach().flatten().split(1):
            total = total + element[0]
        return g, total


def test_a_long_sum_in_float32_itself_passes() -> None:
    assert probed(RowByRow, torch.float32, (6, 4), (4,)).findings == []


def test_one_running_sum_over_two_axes_in_float32_passes() -> None:
    assert probed(OneByOne, torch.float32, (3, 20), ()).findings == []


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.softmax(-1),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: x - x.mean(0),
        lambda x: (x - x.mean(0)) / (x.std(0) + 0.1),
        lambda x: torch.nn.functional.dropout(x, 0.5),
    ],
)
def test_conditions_and_chance_are_allowed_for(op: Any) -> None:
    assert probed(op, torch.bfloat16, (6, 4)).findings == []


class NormalisedColumns(Function):
    """Batch normalisation; the gradient of ``gamma`` sums terms that cancel."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gamma: Tensor) -> Tensor:
        x = x + 3.0
        spread = ((x - x.mean(0)) ** 2).mean(0) + 1e-5
        xhat = (x - x.mean(0)) / spread.sqrt()
        ctx.save_for_backward(xhat, spread, gamma)
        return gamma * xhat

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        xhat, spread, gamma = ctx.saved_tensors
        centred = g - g.mean(0) - xhat * (g * xhat).mean(0)
        return gamma / spread.sqrt() * centred, (g * xhat).sum(0)


class SegmentSoftmax(Function):
    """Softmax in one segment, by index_add, which PyTorch keeps in the dtype of its operands."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        segments = torch.zeros(len(x), dtype=torch.long)
        powers = x.exp()
        y = powers / powers.new_zeros(1).index_add_(0, segments, powers)[segments]
        ctx.save_for_backward(y, segments)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        y, segments = ctx.saved_tensors
        weighed = g * y
        return weighed - y * weighed.new_zeros(1).index_add(0, segments, weighed)[segments]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("op", "shapes"), [(NormalisedColumns, [(3, 4), (4,)]), (SegmentSoftmax, [(4,)])]
)
def test_a_loss_that_no_backward_could_avoid_passes(
    op: Any, shapes: list[tuple[int, ...]], dtype: torch.dtype
) -> None:
    outcome = probed(op, dtype, *shapes)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class Smoothing(Function):
    """s = α·x + (1 - α)·s along the last axis, in the dtype of x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, alpha: Tensor) -> Tensor:
        share = alpha.sigmoid()
        state, out = x[0], []
        for t in range(x.shape[0]):
            state = share * x[t] + (1 - share) * state
            out.append(state)
        y = torch.stack(out)
        ctx.save_for_backward(x, share, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        x, share, y = ctx.saved_tensors
        carry, reversed_ = torch.zeros_like(g[0]), []
        for t in reversed(range(g.shape[0])):
            reversed_.append(g[t] + carry)
            carry = (1 - share) * reversed_[-1]
        total = torch.stack(reversed_[::-1])
        before = torch.cat([x[:1], y[:-1]])
        slope = (total * (x - before)).sum() * share * (1 - share)
        gradient = share * total
        return torch.cat([gradient[:1] + carry, gradient[1:]]), slope


@pytest.mark.parametrize(("alpha", "seed"), [(-2.0, 1), (-0.4, 0), (-0.4, 1)])
def test_a_recurrence_may_lose_what_autograd_loses_through_forward(
    alpha: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_growth, "SLOW_S", 30.0)  # the machine may be busy
    x = torch.randn(5, generator=torch.Generator().manual_seed(seed))
    values = tuple(v.to(torch.bfloat16).requires_grad_() for v in (x, torch.tensor(alpha)))
    subject = Subject(from_object(Smoothing), Sample("s", "given", values), Settings(seed=0))
    outcome = RULE.probe(subject)
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class ForwardBackward(Function):
    """log Z of a chain, whose backward is the forward-backward algorithm."""

    @staticmethod
    def chain(scores: Tensor, moves: Tensor) -> list[Tensor]:
        found = [scores[0]]
        for row in scores[1:]:
            found.append(torch.logsumexp(found[-1].unsqueeze(1) + moves, 0) + row)
        return found

    @staticmethod
    def forward(ctx: Any, scores: Tensor, moves: Tensor) -> Tensor:
        ctx.save_for_backward(scores, moves)
        return torch.logsumexp(ForwardBackward.chain(scores, moves)[-1], 0)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        scores, moves = ctx.saved_tensors
        chain = ForwardBackward.chain(scores, moves)
        whole, after = torch.logsumexp(chain[-1], 0), torch.zeros_like(scores[0])
        total, rows = torch.zeros_like(moves), []
        for t in range(scores.shape[0] - 1, -1, -1):
            rows.append(torch.exp(chain[t] + after - whole))
            if t:
                step = moves + (scores[t] + after).unsqueeze(0)
                total = total + torch.exp(chain[t - 1].unsqueeze(1) + step - whole)
                after = torch.logsumexp(step, 1)
        return torch.stack(rows[::-1]) * g, total * g


def test_an_emulation_that_stops_short_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_growth, "SLOW_S", 30.0)
    outcome = probed(ForwardBackward, torch.float32, (4, 3), (3, 3))
    assert (outcome.verdict, outcome.findings) == ("pass", [])


class LongRowByRow(InFloat32):
    """As RowByRow, with more operations a row than are emulated."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros_like(g[0])
        for row in g:
            total = ((((total + row) * 2) * 0.5) * 4) * 0.25
        return g, total


def test_a_long_backward_is_still_accused_of_a_sum_that_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(error_growth, "SLOW_S", 30.0)
    outcome = probed(LongRowByRow, torch.bfloat16, (6, 4), (4,))
    (finding,) = outcome.findings
    assert (outcome.verdict, finding.input) == ("fail", "bias")
    assert finding.evidence["relative_error"] > 0.2 > finding.evidence["allowed"]

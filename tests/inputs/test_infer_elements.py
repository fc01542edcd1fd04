"""Integers that forward takes out of a tensor one by one, and slices or indexes with."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


class SpanMean(Function):
    """Refuses what is no span, whatever its dtype: only its use says that it is of integers."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
        if spans.min() < 0 or (spans[:, 0] > spans[:, 1]).any():
            raise ValueError("a span is a start and an end")
        ctx.save_for_backward(spans)
        ctx.length = x.shape[0]
        return torch.stack([x[a : b + 1].mean() for a, b in spans.tolist()])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (spans,) = ctx.saved_tensors
        out = grad.new_zeros(ctx.length)
        for k, (a, b) in enumerate(spans.tolist()):
            out[a : b + 1] += grad[k] / (b + 1 - a)
        return out, None


class Documented(SpanMean):
    """Means of x (N,) over integer spans (S, 2), ends included."""


class Pairs(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[i] * x[j] for i, j in zip(left.tolist(), right.tolist())])  # noqa: B905


class Numbers(Function):
    """Scales x (N,) by integer power, and by the numbers of a list."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, power: int, factors: torch.Tensor) -> torch.Tensor:
        return x**power * sum(f * 2 for f in factors.tolist())


@pytest.mark.parametrize("op", [SpanMean, Documented])
def test_bounds_of_slices_are_integers(op: type) -> None:
    x, spans = infer(from_object(op), 0)[0].args
    assert x.dim() == 1
    assert spans.dtype == torch.int64
    assert spans.shape[1] == 2
    assert bool((spans[:, 0] <= spans[:, 1]).all())
    assert int(spans.max()) < len(x)


def test_elements_that_index_are_integers() -> None:
    weights = {item.name: item.weights for item in gather(from_object(Pairs))}
    assert weights["left"]["index"] > 2
    assert weights["right"]["index"] > 2


def test_elements_that_are_computed_with_are_not() -> None:
    known = {item.name: item for item in gather(from_object(Numbers))}
    assert "index" not in known["factors"].weights
    assert "index" not in known["power"].weights


class RaggedSums(Function):
    """Nothing but its use says that ``cut`` holds where segments begin and end."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cut: torch.Tensor) -> torch.Tensor:
        ctx.cut, ctx.length = cut, len(x)
        return torch.stack([x[cut[i] : cut[i + 1]].sum() for i in range(len(cut) - 1)])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return torch.cat([g.expand(int(n)) for g, n in zip(grad, ctx.cut.diff())]), None  # noqa: B905


class Knots(Function):
    """Differences of neighbours are no bounds of segments."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
        return x * (knots[1:] - knots[:-1]).sum()


def test_bounds_of_segments_end_where_the_tensor_does() -> None:
    x, cut = infer(from_object(RaggedSums), 0)[0].args
    assert cut.dtype == torch.int64
    assert (int(cut[0]), int(cut[-1])) == (0, len(x))
    assert bool((cut.diff() >= 0).all())


def test_differences_of_neighbours_are_no_bounds() -> None:
    known = {item.name: item for item in gather(from_object(Knots))}
    assert not known["knots"].adjacent


class Option(Function):
    """x (N,), unit u, v (N,), side: +1 (call) or -1 (put)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, u: torch.Tensor, v: torch.Tensor, side: int = 1
    ) -> torch.Tensor:
        return side * x * u * v


class Interval(Function):
    """x between -1 and 1, scaled by level in [-1, 1], from -1 to 1."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, level: float = 1.0) -> torch.Tensor:
        return level * x


def test_documented_signs_and_unit_vectors() -> None:
    known = {item.name: item.domain for item in gather(from_object(Option))}
    assert (known["u"], known["v"], known["side"]) == ("lengths", "lengths", "signs")
    assert known["x"] not in ("lengths", "signs")
    interval = {item.name: item.domain for item in gather(from_object(Interval))}
    assert "signs" not in interval.values()


class Inherits(Option):
    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, grad, grad, None


class Corrects(Option):
    """x, u and v (N,)."""


def test_a_class_without_documentation_has_that_of_its_own_base() -> None:
    assert {item.name: item.domain for item in gather(from_object(Inherits))}["u"] == "lengths"
    assert {item.name: item.domain for item in gather(from_object(Corrects))}["u"] != "lengths"


class Diverges(Function):
    """A fixed point that exists only where every row of ``w`` is positive."""

    @staticmethod
    def forward(ctx: Any, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        p = w / w.sum(-1, keepdim=True)
        r = v
        for _ in range(300):
            r = 0.8 * (p.mT @ r) + v
        ctx.save_for_backward(p)
        return r

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (p,) = ctx.saved_tensors
        eye = torch.eye(len(p), dtype=p.dtype)
        return None, torch.linalg.solve(eye - 0.8 * p, grad)


def test_inputs_at_which_an_iteration_runs_away_are_not_meant() -> None:
    w, _ = infer(from_object(Diverges), 0)[0].args
    r = Diverges.apply(*infer(from_object(Diverges), 0)[0].args)
    assert float(r.abs().max()) < 1e6, w


class RaggedMax(Function):
    """No segment may be empty, as a maximum needs an element."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, ptr: torch.Tensor) -> torch.Tensor:
        pairs = zip(ptr[:-1].tolist(), ptr[1:].tolist())  # noqa: B905
        found = [(x[a:b].max(0), a) for a, b in pairs]
        ctx.save_for_backward(torch.stack([best.indices + a for best, a in found]))
        ctx.size = len(x)
        return torch.stack([best.values for best, _ in found])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (at,) = ctx.saved_tensors
        return grad.new_zeros(ctx.size, *grad.shape[1:]).scatter(0, at, grad), None


def test_segments_that_must_not_be_empty_are_not() -> None:
    x, ptr = infer(from_object(RaggedMax), 0)[0].args
    assert bool((ptr.diff() > 0).all())
    assert int(ptr[-1]) == len(x)
    assert len(ptr) > 2


class Spread(Function):
    """``torch.arange`` takes a fraction too, and arithmetic with the number looks like one."""

    @staticmethod
    def forward(ctx, x, q, align=False):  # type: ignore[no-untyped-def]
        at = (torch.arange(q, dtype=x.dtype) + 0.5) * x.shape[-1] / q - 0.5
        ctx.q = q
        return x.mean(-1, keepdim=True) * at

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None, None


class Until(Spread):
    """The end of an interval is no count."""

    @staticmethod
    def forward(ctx, x, q, align=False):  # type: ignore[no-untyped-def]
        return x.mean(-1, keepdim=True) * torch.arange(0.0, q, 0.25, dtype=x.dtype) / math.exp(q)


def test_what_arange_counts_to_is_an_integer() -> None:
    assert isinstance(infer(from_object(Spread), 0)[0].args[1], int)
    assert isinstance(infer(from_object(Until), 0)[0].args[1], float)


class Sides(Function):
    """A loss for labels in {0, 1}: its formula is right for no other ones."""

    scale = 1.0

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(logits, target)
        losses = torch.nn.functional.softplus(logits) - target * logits
        return torch.where(target > 0.5, 2 * losses, losses).mean()

    @classmethod
    def backward(cls, ctx: Any, grad: torch.Tensor) -> Any:
        logits, target = ctx.saved_tensors
        side = 2 * target - 1
        slope = cls.scale * -side * torch.sigmoid(-side * logits) * (1 + target)
        return grad * slope / logits.numel(), None


class HalfOfSides(Sides):
    scale = 0.5


class SidesOfAny(Sides):
    """A loss for labels in [0, 1]."""


class Picks(Function):
    """x (N,), kept where kept: (N,) int64, 0 or 1."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        if kept.is_floating_point():
            raise TypeError("integers")
        ctx.save_for_backward(kept)
        return x * kept

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        (kept,) = ctx.saved_tensors
        return torch.where(kept == 1, grad, torch.zeros_like(grad)), None


def test_integers_that_are_zero_or_one() -> None:
    kept = infer(from_object(Picks), 0)[0].args[1]
    assert kept.dtype == torch.int64
    assert set(kept.tolist()) == {0, 1}
    assert gradlint.check(Picks, order=1, seed=0).ok


def test_labels_that_are_zero_or_one() -> None:
    op = from_object(Sides)
    samples = infer(op, 0)
    target = samples[0].args[1]
    assert set(target.unique().tolist()) == {0.0, 1.0}
    assert not target.requires_grad
    assert gradlint.check(Sides, order=1, seed=0).ok
    wrong = gradlint.check(HalfOfSides, order=1, seed=0)
    assert [(f.code, f.severity, f.input) for f in wrong.findings if f.severity != "info"] == [
        ("GL401", "error", "logits")
    ]
    elements = infer(from_object(SidesOfAny), 0)[0].args[1]
    assert not set(elements.unique().tolist()) <= {0.0, 1.0}

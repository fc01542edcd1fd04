"""Bounds between arguments: what is read, and that values keep them."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

from gradlint.checking.further import _bounded
from gradlint.inputs._gather import gather
from gradlint.inputs._infer import infer
from gradlint.inputs._read_bounds import read_bounds
from gradlint.inputs.bounds import kept
from gradlint.inputs.designed import replaced
from gradlint.inputs.resized import resized
from gradlint.model.related import Bound, Side
from gradlint.targets.build import from_object


def bounds_of(op: object) -> set[Bound]:
    return {bound for item in gather(from_object(op)) for bound in item.bounds}


SHAPES = "scores: (B, T, N)\n    short: (B,) integers{}\n    long: (B,) integers{}"
SHORT, LONG = Side("short"), Side("long")


@pytest.mark.parametrize(
    ("short", "long", "expected"),
    [
        (", 1 <= short <= N", "", {Bound(Side(number=1), SHORT), Bound(SHORT, Side("scores", 2))}),
        ("", ", short <= long <= T", {Bound(SHORT, LONG), Bound(LONG, Side("scores", 1))}),
        ("", "; long > short", {Bound(SHORT, LONG, True)}),
        (" with short < long", "", {Bound(SHORT, LONG, True)}),
        ("", ", where short < long there is no path", set()),
        ("", ", short + long <= T", set()),
        ("", ", K <= M", set()),
        ("", "; the path p such that short <= p < long", {Bound(SHORT, LONG, True)}),
        ("", ", short < p > long", set()),
    ],
)
def test_documented_bounds(short: str, long: str, expected: set[Bound]) -> None:
    def forward(scores, short, long):
        return scores * 2

    forward.__doc__ = SHAPES.format(short, long)
    found = gather(from_object(forward))
    found[0].shape = ("B", "T", "N")
    assert set(read_bounds(forward.__doc__, forward, found)) == expected


def any_above(x, short, long):
    if bool((short > long).any()):
        raise ValueError("too short")
    return x * 2


def asserted(x, short, long):
    _, T = x.shape
    assert torch.all(short < long)
    assert long.max() <= T, "too long"
    return x * 2


def either(x, short, long):
    if ((short > long) | (long > x.size(1))).any() or int(short.min()) < 1:
        raise ValueError("no path")
    return x * 2


def no_check(x, short, long):
    if (short > long).any():
        x = x + 1
    if (short > long).all():
        raise ValueError("all of them")
    if short.max() < 2:
        raise ValueError("one may be")
    return x * 2


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (any_above, {Bound(SHORT, LONG)}),
        (asserted, {Bound(SHORT, LONG, True), Bound(LONG, Side("x", 1))}),
        (
            either,
            {Bound(SHORT, LONG), Bound(LONG, Side("x", 1)), Bound(Side(number=1), SHORT)},
        ),
        (no_check, set()),
    ],
)
def test_bounds_that_forward_checks(op: object, expected: set[Bound]) -> None:
    assert bounds_of(op) == expected


def test_values_keep_bounds() -> None:
    bounds = (
        Bound(Side("a"), Side("b")),
        Bound(Side("b"), Side("x", 0)),
        Bound(Side(number=1), Side("a")),
    )
    given = {"a": torch.tensor([0, 4, 9]), "b": torch.tensor([2, 3, 1]), "x": torch.zeros(5)}
    found = {**given, **kept(bounds, given)}
    assert found["a"].tolist() == [1, 3, 1]
    assert found["b"].tolist() == [2, 4, 5]


def test_numbers_change_places() -> None:
    low = torch.tensor([0.5, 3.0], requires_grad=True)
    high = torch.tensor([1.5, 2.0])
    found = kept((Bound(Side("low"), Side("high")),), {"low": low, "high": high})
    assert found["low"].tolist() == [0.5, 2.0]
    assert found["low"].requires_grad
    assert found["high"].tolist() == [1.5, 3.0]
    assert not found["high"].requires_grad


def test_what_keeps_bounds_stays_as_it_is() -> None:
    given = {"a": torch.tensor([1, 2]), "b": torch.tensor([2, 2])}
    assert kept((Bound(Side("a"), Side("b")),), given) == {}
    other = {"a": torch.tensor([3, 2]), "b": torch.tensor([1, 2, 2])}
    assert kept((Bound(Side("a"), Side("b")),), other) == {}


class Alignment(Function):
    """Sum of the scores up to a place in the rows of each item.

    scores: (B, T, N)
    text_len: (B,) integers, 1 <= text_len <= N
    mel_len: (B,) integers, text_len <= mel_len <= T
    """

    @staticmethod
    def forward(ctx, scores, text_len, mel_len):
        ctx.save_for_backward(text_len, mel_len)
        ctx.shape = scores.shape
        rows = [s[m - 1, n - 1] for s, n, m in zip(scores, text_len, mel_len, strict=True)]
        return torch.stack(rows)

    @staticmethod
    def backward(ctx, g):
        text_len, mel_len = ctx.saved_tensors
        found = g.new_zeros(ctx.shape)
        for b, (n, m) in enumerate(zip(text_len, mel_len, strict=True)):
            found[b, m - 1, n - 1] = g[b]
        return found, None, None


def keeps(scores: torch.Tensor, text: torch.Tensor, mel: torch.Tensor) -> bool:
    within = bool((text >= 1).all() and (text <= scores.shape[2]).all())
    return within and bool((text <= mel).all() and (mel <= scores.shape[1]).all())


def test_inferred_designed_and_resized_values_keep_bounds() -> None:
    sample = infer(from_object(Alignment), 0)[0]
    scores, text, mel = sample.args
    assert keeps(scores, text, mel)
    assert len(set(text.tolist())) > 1
    assert len(set(mel.tolist())) > 1
    most = torch.full_like(text, scores.shape[2])
    designed = replaced(sample, text, most, "where `text_len` is one index only")
    assert not keeps(*designed.sample.args)
    assert keeps(*_bounded(designed).sample.args)
    smaller = resized(sample, {(0, 1): 2}, seed=0)
    assert smaller is not None
    assert keeps(*smaller.args)


class TopK(Function):
    """Sum of the utilities of the first places.

    utilities: (B, M)
    ranking: (B, K) int64, items from best to worst, no item twice; K <= M
    """

    @staticmethod
    def forward(ctx, utilities, ranking):
        ctx.save_for_backward(ranking)
        ctx.shape = utilities.shape
        return utilities.gather(1, ranking).sum(1)

    @staticmethod
    def backward(ctx, g):
        (ranking,) = ctx.saved_tensors
        ones = g[:, None].expand(ranking.shape)
        return g.new_zeros(ctx.shape).scatter_add(1, ranking, ones), None


def test_sizes_keep_their_order() -> None:
    utilities, ranking = infer(from_object(TopK), 0)[0].args
    assert ranking.shape[1] <= utilities.shape[1]
    assert all(len(set(row)) == len(row) for row in ranking.tolist())

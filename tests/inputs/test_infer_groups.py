"""Several of one tensor for each of another: heads that share a key."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.targets.build import from_object


def function(forward, backward) -> type[Function]:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (Function,), {**members, "__doc__": forward.__doc__})


def shapes(op) -> list[tuple[int, ...]]:
    return [tuple(arg.shape) for arg in infer(from_object(op), 0)[0].args]


def shared(ctx, q, k):
    if q.shape[0] % k.shape[0]:
        raise ValueError("heads can't share keys")
    ctx.save_for_backward(q, k)
    return torch.einsum("grtd,gsd->grts", q.reshape(len(k), -1, *q.shape[1:]), k).flatten(0, 1)


def shared_right(ctx, g):
    q, k = ctx.saved_tensors
    g = g.reshape(len(k), -1, *g.shape[1:])
    of_q = torch.einsum("grts,gsd->grtd", g, k).reshape(q.shape)
    return of_q, torch.einsum("grts,grtd->gsd", g, q.reshape(len(k), -1, *q.shape[1:]))


def shared_wrong(ctx, g):
    q, k = ctx.saved_tensors
    of_q, _ = shared_right(ctx, g)
    qs = q.reshape(-1, len(k), *q.shape[1:])  # the other order
    g = g.reshape(len(k), -1, *g.shape[1:])
    return of_q, torch.einsum("grts,rgtd->gsd", g, qs)


def codes(op) -> set[str]:
    (report,) = gradlint.check(op, seed=0, order=1, select=["GL2", "GL4", "GL706"]).targets
    return {item.code for item in report.findings if item.severity != "info"}


def test_heads_share_keys_where_forward_lets_them():
    (heads, *_), (keys, *_) = shapes(function(shared, shared_right))
    assert heads == 2 * keys
    assert codes(function(shared, shared_wrong)) == {"GL401"}
    assert codes(function(shared, shared_right)) == set()


def multiplied(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y


def multiplied_right(ctx, g):
    x, y = ctx.saved_tensors
    return g * y, g * x


def first_rows(ctx, x, y):
    """Reads as many rows of x as y has, and says nothing of others."""
    ctx.save_for_backward(x, y)
    return (x[: len(y)] * y).sum(-1)


def first_rows_right(ctx, g):
    x, y = ctx.saved_tensors
    of_x = torch.zeros_like(x)
    of_x[: len(y)] = g[:, None] * y
    return of_x, g[:, None] * x[: len(y)]


def documented(ctx, q, k):
    """Scores. q: (H, T, D) and k: (H, S, D)."""
    return shared(ctx, q, k)


@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (multiplied, multiplied_right),
        (first_rows, first_rows_right),
        (documented, shared_right),
    ],
)
def test_axes_stay_equal_where_nothing_says_otherwise(forward, backward):
    x, y = shapes(function(forward, backward))
    assert x[0] == y[0]


def told(layers, x):
    """Layers in a row. layers: list of (W, b) pairs, x: (B, D)"""
    for W, b in layers:
        x = torch.tanh(x @ W + b)
    return x


def triples(terms, x):
    """terms: list of (a, b, c) triples"""
    return sum(a.sum() * x * x + b.sum() * x + c.sum() for a, b, c in terms)


@pytest.mark.parametrize(("function", "members"), [(told, 2), (triples, 3)])
def test_a_sequence_of_tuples_of_tensors(function, members):
    first = infer(from_object(function))[0].args[0]
    assert len(first) >= 2
    assert {len(one) for one in first} == {members}


def features(xs):
    """xs: list of (N, D) tensors, averaged"""
    return sum(x.mean() for x in xs)


def test_a_list_of_tensors_of_one_shape_is_none_of_tuples():
    (xs,) = infer(from_object(features))[0].args
    assert all(isinstance(x, torch.Tensor) for x in xs)


def test_a_small_letter_beside_a_capital_is_a_vector():
    layers, _ = infer(from_object(told))[0].args
    assert {(W.dim(), b.dim()) for W, b in layers} == {(2, 1)}


def windowed(signal, window):
    """Energies of frames. signal (B, T), window (W,)"""
    size = window.numel()
    return (signal.unfold(1, size, size // 2) * window).square().sum(-1)


def test_a_window_is_smaller_than_its_signal():
    signal, window = infer(from_object(windowed))[0].args
    assert len(window) < signal.shape[1]

"""Faults that do not show at given inputs are found beside them; right operators stay green."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradlint
from gradlint.model.report import TargetReport

T = torch.tensor
X = T([[0.3, -1.2, 0.7], [-0.4, 2.1, -0.6], [1.1, 0.2, -0.9], [0.8, -0.5, 1.4]])


def op(forward: Any, backward: Any) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (torch.autograd.Function,), {**members, "__doc__": forward.__doc__})


def check(thing: Any, *inputs: Any) -> TargetReport:
    select = ["GL1", "GL2", "GL4"]
    return gradlint.check(thing, [inputs], seed=0, order=1, select=select).targets[0]


def red(report: TargetReport) -> list[str]:
    return [f"{item.code} {item.message}" for item in report.findings if item.severity != "info"]


def powered(ctx, x, squared=False, reduction="sum"):
    ctx.save_for_backward(x)
    ctx.squared, ctx.reduction = squared, reduction
    y = x * x if squared else 3 * x
    return y.mean() if reduction == "mean" else y.sum()


def powered_right(ctx, g):
    (x,) = ctx.saved_tensors
    g = g / x.numel() if ctx.reduction == "mean" else g
    return g * (2 * x if ctx.squared else torch.full_like(x, 3.0)), None, None


def powered_without_two(ctx, g):
    (x,) = ctx.saved_tensors
    g = g / x.numel() if ctx.reduction == "mean" else g
    return g * (x if ctx.squared else torch.full_like(x, 3.0)), None, None


def powered_without_mean(ctx, g):
    (x,) = ctx.saved_tensors
    return g * (2 * x if ctx.squared else torch.full_like(x, 3.0)), None, None


def strided(ctx, x, hop):
    ctx.size, ctx.hop = x.shape[-1], hop
    ctx.places = torch.arange(0, x.shape[-1] - 1, hop)[:, None] + torch.arange(2)
    return x[:, ctx.places]


def strided_right(ctx, g):
    made = g.new_zeros(g.shape[0], ctx.size)
    return made.index_add(1, ctx.places.flatten(), g.flatten(1)), None


def strided_overwritten(ctx, g):
    made = g.new_zeros(g.shape[0], ctx.size)
    made[:, ctx.places.flatten()] = g.flatten(1)
    return made, None


def labelled(ctx, x, target, ignore_index=-100):
    valid = target != ignore_index
    safe = target.masked_fill(~valid, 0)
    ctx.save_for_backward(x, safe, valid)
    picked = x.log_softmax(-1).gather(1, safe[:, None]).squeeze(1)
    return -(picked * valid).sum() / valid.sum()


def _labelled(ctx, g, count):
    x, safe, valid = ctx.saved_tensors
    hot = torch.nn.functional.one_hot(safe, x.shape[-1])
    return g * (x.softmax(-1) - hot) * valid[:, None] / count, None, None


def labelled_right(ctx, g):
    return _labelled(ctx, g, ctx.saved_tensors[2].sum())


def labelled_by_all(ctx, g):
    return _labelled(ctx, g, len(ctx.saved_tensors[2]))


def carried(ctx, x, done):
    ctx.save_for_backward(done)
    carry, rows = torch.zeros_like(x[0]), []
    for row, end in zip(x, done, strict=True):
        carry = row + 0.5 * carry * ~end
        rows.append(carry)
    return torch.stack(rows)


def _carried(g, done):
    carry, rows = torch.zeros_like(g[0]), []
    for row, end in zip(g.flip(0), done.flip(0), strict=True):
        carry = row + carry
        rows.insert(0, carry)
        carry = 0.5 * carry * ~end
    return torch.stack(rows), None


def carried_right(ctx, g):
    return _carried(g, ctx.saved_tensors[0])


def carried_on(ctx, g):
    return _carried(g, torch.zeros_like(ctx.saved_tensors[0]))


def ranked(ctx, x, time):
    later = time[None] >= time[:, None]
    ctx.save_for_backward(x, time)
    return (x.exp() * later).sum(1).log().sum()


def _ranked(x, later):
    share = later * x.exp()
    return (share / share.sum(1, keepdim=True)).sum(0), None


def ranked_right(ctx, g):
    x, time = ctx.saved_tensors
    return _ranked(g * 0 + x, time[None] >= time[:, None])[0] * g, None


def ranked_strictly(ctx, g):
    x, time = ctx.saved_tensors
    later = (time[None] > time[:, None]) | torch.eye(len(x), dtype=torch.bool)
    return _ranked(x, later)[0] * g, None


FLAT = T([0.4, -0.7, 1.1, -0.2, 0.9])
TIMES = T([3.2, 1.1, 4.7, 2.5, 5.3])
LABELS = T([2, 0, 1, 2])
NEVER = torch.zeros(4, 3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("forward", "right", "wrong", "inputs", "label"),
    [
        (powered, powered_right, powered_without_two, (X, False, "sum"), "with squared=True"),
        (powered, powered_right, powered_without_mean, (X, False, "sum"), "with reduction='mean'"),
        (strided, strided_right, strided_overwritten, (X.T.reshape(2, 6), 2), "with hop=3"),
        (labelled, labelled_right, labelled_by_all, (X, LABELS, -100), "ignore_index"),
        (carried, carried_right, carried_on, (X, NEVER), "where `done` has True and False"),
        (ranked, ranked_right, ranked_strictly, (FLAT, TIMES), "where `time` has ties"),
    ],
)
def test_what_given_inputs_do_not_show_is_found(forward, right, wrong, inputs, label):
    if forward is strided:
        label = "with hop="
    found = red(check(op(forward, wrong), *inputs))
    assert any(line.startswith("GL401 wrong gradient") and label in line for line in found)
    assert red(check(op(forward, right), *inputs)) == []


def unexplained(ctx, simulated, observed):
    """The share of the spread of `observed`, NaN where nothing was, that is left."""
    seen = ~observed.isnan()
    known = observed[seen]
    ctx.save_for_backward(simulated, observed, seen)
    ctx.spread = (known - known.mean()).square().sum()
    return (simulated[seen] - known).square().sum() / ctx.spread


def unexplained_right(ctx, g):
    simulated, observed, seen = ctx.saved_tensors
    error = torch.where(seen, simulated - observed, 0.0)
    return 2 * g * error / ctx.spread, None


def unexplained_by_zero(ctx, g):
    simulated, observed, seen = ctx.saved_tensors
    return 2 * g * (simulated - observed) * seen / ctx.spread, None


@pytest.mark.parametrize("count", [3, 4])
def test_one_missing_value_is_found_where_two_leave_too_few(count: int) -> None:
    observed = X[:count, 1].clone().requires_grad_(False)
    inputs = X[:count, 0].clone().requires_grad_(), observed
    select = ["GL1", "GL302", "GL4"]

    def found(backward: Any) -> list[str]:
        made = op(unexplained, backward)
        report = gradlint.check(made, [inputs], seed=0, order=1, select=select).targets[0]
        return [text for text in red(report) if "nan in places" in text]

    assert [text[:5] for text in found(unexplained_by_zero)] == ["GL302"]
    assert found(unexplained_right) == []


def companded(ctx, x, mu=15.0):
    """sign(x) log(1 + mu |x|)"""
    ctx.save_for_backward(x)
    ctx.mu = mu
    return x.sign() * (mu * x.abs()).log1p()


def companded_right(ctx, g):
    (x,) = ctx.saved_tensors
    return g * ctx.mu / (1 + ctx.mu * x.abs()), None


def companded_above_zero(ctx, g):
    (x,) = ctx.saved_tensors
    return g * ctx.mu / (1 + ctx.mu * x), None


def plain(ctx, x):
    """log(1 + x)"""
    ctx.save_for_backward(x)
    return (1 + x).log()


def plain_for_positive(ctx, g):
    (x,) = ctx.saved_tensors
    return g / (1 + x.abs())


def loud(ctx, x):
    """The logarithm of a level.

    Args:
        x: magnitudes, with tiny ones below zero from rounding.
    """
    ctx.save_for_backward(x)
    return (x.abs() + 0.1).log()


def loud_for_positive(ctx, g):
    (x,) = ctx.saved_tensors
    return g / (x + 0.1)


def test_what_takes_absolute_values_takes_both_signs() -> None:
    (text,) = red(check(op(companded, companded_above_zero), X.abs() / 3))
    assert text == "GL401 wrong gradient for `x` where `x` has both signs"
    assert red(check(op(companded, companded_right), X.abs() / 3)) == []


@pytest.mark.parametrize(
    ("forward", "backward"), [(plain, plain_for_positive), (loud, loud_for_positive)]
)
def test_one_sign_that_nothing_speaks_against_is_kept(forward: Any, backward: Any) -> None:
    assert red(check(op(forward, backward), X.abs() / 3)) == []


class _Bag(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, rows, padding_idx):
        kept = rows != (-1 if padding_idx is None else padding_idx)
        ctx.save_for_backward(table, rows, kept)
        return (table[rows] * kept[..., None]).sum(1)

    @staticmethod
    def backward(ctx, g):
        table, rows, kept = ctx.saved_tensors
        each = (g[:, None] * kept[..., None]).reshape(-1, table.shape[1])
        return torch.zeros_like(table).index_add(0, rows.reshape(-1), each), None, None


class _BagOfAll(_Bag):
    @staticmethod
    def backward(ctx, g):
        table, rows, _ = ctx.saved_tensors
        each = g[:, None].expand(*rows.shape, -1).reshape(-1, table.shape[1])
        return torch.zeros_like(table).index_add(0, rows.reshape(-1), each), None, None


class _Frozen(_BagOfAll):
    """The row of the padding is read and gets no gradient, as that of torch's own embedding."""

    @staticmethod
    def forward(ctx, table, rows, padding_idx):
        ctx.save_for_backward(table, rows, rows != padding_idx)
        return table[rows].sum(1)

    @staticmethod
    def backward(ctx, g):
        return _Bag.backward(ctx, g)


class Bag(torch.nn.Module):
    def __init__(self, function: Any, padding_idx: int) -> None:
        super().__init__()
        self.function, self.padding_idx = function, padding_idx
        self.table = torch.nn.Parameter(torch.cat([X, 0.5 * X[:2]]).double())

    def forward(self, rows):
        return self.function.apply(self.table, rows, self.padding_idx)


def test_padding_of_a_given_module_occurs_among_the_indices() -> None:
    rows = T([[0, 2, 1], [1, 1, 3]])
    (text,) = red(check(Bag(_BagOfAll, 4), rows))
    assert text == "GL401 wrong gradient for `table` where padding_idx=4 occurs in `rows`"
    assert red(check(Bag(_Bag, 4), rows)) == []
    assert red(check(Bag(_Frozen, 4), rows)) == []


def halved(ctx, x, dim=-1):
    ctx.save_for_backward(x)
    ctx.dim = dim
    first, second = x.chunk(2, dim)
    return first * second.sigmoid()


def _halved(ctx, g, dim):
    first, second = ctx.saved_tensors[0].chunk(2, ctx.dim)
    gate = second.sigmoid()
    return torch.cat((g * gate, g * first * gate * (1 - gate)), dim)


def halved_right(ctx, g):
    return _halved(ctx, g, ctx.dim), None


def halved_along_last(ctx, g):
    return _halved(ctx, g, -1), None


def test_an_axis_that_is_moved_keeps_the_size_that_suits() -> None:
    """Three rows in two halves are two rows and one, which is broadcast by accident."""
    given = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert red(check(op(halved, halved_right), given)) == []
    found = red(check(op(halved, halved_along_last), given))
    assert len(found) == 1
    assert "with dim=0" in found[0]


def attention(ctx, q, k, v, keep):
    scores = (q @ k.mT).masked_fill(~keep[:, None, :], -1e9)
    weights = scores.softmax(-1)
    ctx.save_for_backward(q, k, v, weights, keep)
    return weights @ v


def _attention(ctx, g, shown):
    q, k, v, weights, _ = ctx.saved_tensors
    grad = g @ v.mT
    grad = weights * (grad - (weights * grad).sum(-1, keepdim=True)) * shown
    return grad @ k, grad.mT @ q, weights.mT @ g, None


def attention_right(ctx, g):
    """But for a row without any key, where all weights are equal and depend on no score."""
    return _attention(ctx, g, 1.0)


def attention_by_first_mask(ctx, g):
    return _attention(ctx, g, ctx.saved_tensors[-1][:1, None, :])


def test_a_row_without_any_key_is_hardly_meant() -> None:
    generator = torch.Generator().manual_seed(3)
    tensors = [
        torch.randn(2, 3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
        for _ in range(3)
    ]
    keep = torch.ones(2, 3, dtype=torch.bool)
    report = check(op(attention, attention_right), *tensors, keep)
    assert red(report) == []
    assert [item.code for item in report.findings] == ["GL402", "GL402"]
    (first, *_) = red(check(op(attention, attention_by_first_mask), *tensors, keep))
    assert first.startswith("GL402 wrong gradient for `q`")


def laid_out(ctx, x, weight, layout="oi"):
    """Weights are (out, in) in layout "oi", (in, out) in layout "io"."""
    ctx.save_for_backward(x, weight)
    ctx.layout = layout
    return x @ (weight.mT if layout == "oi" else weight)


def laid_out_right(ctx, g):
    x, weight = ctx.saved_tensors
    if ctx.layout == "oi":
        return g @ weight, g.mT @ x, None
    return g @ weight.mT, x.mT @ g, None


def laid_out_alike(ctx, g):
    x, weight = ctx.saved_tensors
    if ctx.layout == "oi":
        return g @ weight, g.mT @ x, None
    return g @ weight.mT, 2 * x.mT @ g, None


def flipped(ctx, x, weight, transposed=False):
    ctx.save_for_backward(x, weight)
    ctx.transposed = transposed
    return x @ (weight.mT if transposed else weight)


def flipped_right(ctx, g):
    x, weight = ctx.saved_tensors
    if ctx.transposed:
        return g @ weight, g.mT @ x, None
    return g @ weight.mT, x.mT @ g, None


def flipped_sign(ctx, g):
    x, weight = ctx.saved_tensors
    if ctx.transposed:
        return -g @ weight, g.mT @ x, None
    return g @ weight.mT, x.mT @ g, None


@pytest.mark.parametrize(
    ("forward", "right", "wrong", "shape", "words"),
    [
        (laid_out, laid_out_right, laid_out_alike, (2, 3), "GL401 wrong gradient for `weight`"),
        (flipped, flipped_right, flipped_sign, (3, 2), "GL401 wrong gradient for `x`"),
    ],
)
def test_matrices_are_transposed_where_an_option_asks_for_it(
    forward: Any, right: Any, wrong: Any, shape: tuple[int, int], words: str
) -> None:
    """The other layout is known from documentation alone."""
    given = X.double().requires_grad_()
    weight = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(shape).requires_grad_()
    assert red(check(op(forward, right), given, weight)) == []
    (found,) = red(check(op(forward, wrong), given, weight))
    assert found.startswith(words)


def powers(ctx, x, power=1.0, scale=1.0, steps=4):
    ctx.save_for_backward(x)
    ctx.power, ctx.scale = power, scale
    if power == 0:
        return scale * (1 + x * x).log()
    return scale * (1 + x * x) ** power


def powers_right(ctx, g):
    (x,) = ctx.saved_tensors
    if ctx.power == 0:
        return g * ctx.scale * 2 * x / (1 + x * x), None, None, None
    outer = ctx.power * (1 + x * x) ** (ctx.power - 1)
    return g * ctx.scale * outer * 2 * x, None, None, None


def powers_without_two(ctx, g):
    found = powers_right(ctx, g)[0]
    return found / 2 if ctx.power == 0 else found, None, None, None


def test_a_chosen_number_gives_way_to_what_code_asks_for_and_to_its_default():
    right = check(op(powers, powers_right), X, 2.0, 0.5, 7)
    assert red(right) == []
    labels = [item.label for item in right.tried]
    # ``steps`` is chosen, too, but its default may be too few.
    assert labels[:3] == ["with power=1.0", "with power=0.0", "with scale=1.0"]
    wrong = check(op(powers, powers_without_two), X, 2.0, 0.5, 7)
    assert red(wrong) == ["GL401 wrong gradient for `x` with power=0.0"]


def kept_below(ctx, x, scale, most):
    ctx.save_for_backward(x, scale)
    ctx.most = most
    return x * scale.clamp(max=most)


def kept_below_right(ctx, g):
    x, scale = ctx.saved_tensors
    return g * scale.clamp(max=ctx.most), (g * x).sum(0) * (scale <= ctx.most), None


def kept_below_without_limit(ctx, g):
    x, scale = ctx.saved_tensors
    return g * scale.clamp(max=ctx.most), (g * x).sum(0), None


def scaled_by(function: Any) -> Any:
    class Scaled(torch.nn.Module):
        def __init__(self, width: int, first: float) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.full((width,), first, dtype=torch.float64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function.apply(x, self.scale, 2.0)

    return Scaled


@pytest.mark.parametrize("width", [3, 1])
def test_parameters_pass_what_they_are_compared_with(width: int) -> None:
    """A module that was given: all of its scales are below the limit."""
    right = check(scaled_by(op(kept_below, kept_below_right))(width, 1.0), X)
    assert red(right) == []
    assert "where `scale` is on both sides of 2" in [item.label for item in right.tried]
    wrong = check(scaled_by(op(kept_below, kept_below_without_limit))(width, 1.0), X)
    assert "GL401 wrong gradient for `scale` where `scale` is on both sides of 2" in red(wrong)


def trimmed(ctx, x, k=1):
    order = x.argsort(-1)
    ctx.save_for_backward(order)
    ctx.k = k
    return x.gather(-1, order[..., k : x.shape[-1] - k]).sum(-1)


def _trimmed(ctx, g, kept):
    (order,) = ctx.saved_tensors
    made = g.new_zeros(order.shape)
    return made.scatter(-1, kept, 1.0) * g[..., None], None


def trimmed_right(ctx, g):
    (order,) = ctx.saved_tensors
    return _trimmed(ctx, g, order[..., ctx.k : order.shape[-1] - ctx.k])


def trimmed_from_the_end(ctx, g):
    return _trimmed(ctx, g, ctx.saved_tensors[0][..., ctx.k : -ctx.k])


def test_nothing_is_left_out_where_a_number_says_how_much() -> None:
    given = torch.cat([X, X.flip(0) * 1.3], -1)
    right = check(op(trimmed, trimmed_right), given)
    assert red(right) == []
    assert "with k=0" in [item.label for item in right.tried]
    wrong = check(op(trimmed, trimmed_from_the_end), given)
    assert red(wrong) == ["GL401 wrong gradient for `x` with k=0"]


def experts(ctx, n, *tensors):
    ctx.n = n
    ctx.save_for_backward(*tensors)
    return sum(one * other for one, other in zip(tensors[:n], tensors[n:], strict=False))


def experts_right(ctx, g):
    kept = ctx.saved_tensors
    return None, *(g * other for other in (*kept[ctx.n :], *kept[: ctx.n]))


def test_a_number_that_counts_members_is_not_moved() -> None:
    """With another one, forward takes some of the tensors by accident."""
    report = check(op(experts, experts_right), 2, X, 0.5 * X, X.flip(0), X.flip(1))
    assert red(report) == []
    assert not any("n=" in item.label for item in report.tried)

"""Optional tensors that given inputs leave out are made by gradlint, which shows the faults of the
branch for them; right operators stay green."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import gradlint
from gradlint.model.report import TargetReport

T = torch.tensor
X = T([[0.3, -1.2, 0.7], [-0.4, 2.1, -0.6], [1.1, 0.2, -0.9], [0.8, -0.5, 1.4]])
RATE = T([0.6, 1.3, 0.9])
DEEP = torch.stack([X, X.flip(0) * 1.1])


def op(forward: Any, backward: Any) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (torch.autograd.Function,), {**members, "__doc__": forward.__doc__})


def check(thing: Any, *samples: Any) -> TargetReport:
    select = ["GL1", "GL2", "GL4"]
    return gradlint.check(thing, list(samples), seed=0, order=1, select=select).targets[0]


def red(report: TargetReport) -> list[tuple[str, str, str]]:
    return [
        (item.severity, item.code, item.message)
        for item in report.findings
        if item.severity != "info"
    ]


def made(report: TargetReport) -> dict[str, list[int] | None]:
    """Names and shapes of what gradlint made."""
    last = report.samples[-1]
    return {item.name: item.shape for item in last.args} if "made" in last.label else {}


def cost(ctx, x, rate, initial=None):
    """Costs of changes; `initial` (A,) is what comes before the first row of `x` (T, A)."""
    start = x[:1] if initial is None else initial[None]
    steps = x - torch.cat([start, x[:-1]])
    ctx.has_initial = initial is not None
    ctx.save_for_backward(steps, rate)
    return (rate * steps.pow(2)).sum()


def cost_right(ctx, g):
    steps, rate = ctx.saved_tensors
    of_steps = 2 * g * rate * steps
    of_x = of_steps.clone()
    of_x[:-1] -= of_steps[1:]
    first = -of_steps[0] if ctx.has_initial else None
    return of_x, g * steps.pow(2).sum(0), first


def cost_without_first(ctx, g):
    of_x, _, first = cost_right(ctx, g)
    return of_x, g * ctx.saved_tensors[0][1:].pow(2).sum(0), first


def scan(ctx, a, b, h0=None, reverse=False):
    a, b = (a.flip(1), b.flip(1)) if reverse else (a, b)
    ctx.given, ctx.reverse = h0 is not None, reverse
    h0 = torch.zeros_like(b[:, 0]) if h0 is None else h0
    states, h = [], h0
    for t in range(a.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    out = torch.stack(states, 1)
    ctx.save_for_backward(a, out, h0)
    return out.flip(1) if reverse else out


def scan_right(ctx, g):
    a, out, h0 = ctx.saved_tensors
    g = g.flip(1) if ctx.reverse else g
    carried, of_b = torch.zeros_like(h0), torch.zeros_like(out)
    for t in range(a.shape[1] - 1, -1, -1):
        of_b[:, t] = carried + g[:, t]
        carried = of_b[:, t] * a[:, t]
    of_a = of_b * torch.cat([h0[:, None], out[:, :-1]], 1)
    of_a, of_b = (of_a.flip(1), of_b.flip(1)) if ctx.reverse else (of_a, of_b)
    return of_a, of_b, carried if ctx.given else None, None


def scan_from_zero(ctx, g):
    of_a, *others = scan_right(ctx, g)
    of_a = of_a.clone()
    of_a[:, -1 if ctx.reverse else 0] = 0
    return of_a, *others


def affine(ctx, x, weight, bias=None):
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None
    y = x @ weight
    return y if bias is None else y + bias


def affine_right(ctx, g):
    x, weight = ctx.saved_tensors
    return g @ weight.mT, x.mT @ g, g.sum(0) if ctx.has_bias else None


def affine_mean(ctx, g):
    x, weight = ctx.saved_tensors
    return g @ weight.mT, x.mT @ g, g.mean(0) if ctx.has_bias else None


WEIGHT = T([[0.5, -0.7], [1.2, 0.4], [-0.3, 0.9]])


@pytest.mark.parametrize(
    ("forward", "right", "wrong", "sample", "message", "name", "shape"),
    [
        (cost, cost_right, cost_without_first, (X, RATE), "`rate`", "initial", [3]),
        (scan, scan_right, scan_from_zero, (DEEP, 0.5 * DEEP), "`a`", "h0", [2, 3]),
        (
            *(scan, scan_right, scan_from_zero),
            *((DEEP, 0.5 * DEEP, None, False), "`a`", "h0", [2, 3]),
        ),
        (affine, affine_right, affine_mean, (X, WEIGHT), "`bias`", "bias", [2]),
    ],
)
def test_branch_for_an_optional_tensor(
    forward: Any, right: Any, wrong: Any, sample: Any, message: str, name: str, shape: list[int]
) -> None:
    report = check(op(forward, wrong), sample)
    said = f"wrong gradient for {message} with `{name}` made by gradlint"
    assert red(report) == [("warning", "GL401", said)]
    assert made(report)[name] == shape
    assert report.samples[-1].notes == [
        f"{name}: {tuple(shape)}, left out, so gradlint made it",
    ]
    right_report = check(op(forward, right), sample)
    assert red(right_report) == []
    assert f"{name} != None" not in right_report.not_tried


def scaled_by(ctx, x, scale=None, shift=None):
    """x (T, A), scale (A,) and shift (A,)."""
    y = x if scale is None else x * scale
    ctx.save_for_backward(x, scale)
    ctx.shifted = shift is not None
    return y if shift is None else y + shift


def scaled_by_right(ctx, g):
    x, scale = ctx.saved_tensors
    of_x = g if scale is None else g * scale
    of_scale = None if scale is None else (g * x).sum(0)
    return of_x, of_scale, g.sum(0) if ctx.shifted else None


def scaled_by_wrong(ctx, g):
    of_x, of_scale, of_shift = scaled_by_right(ctx, g)
    both = of_scale is not None and of_shift is not None
    return of_x, 2 * of_scale if both else of_scale, of_shift


def test_fault_of_two_optional_tensors_together() -> None:
    report = check(op(scaled_by, scaled_by_wrong), (X,))
    said = "wrong gradient for `scale` with `scale` and `shift` made by gradlint"
    assert red(report) == [("warning", "GL401", said)]
    assert red(check(op(scaled_by, scaled_by_right), (X,))) == []


def test_what_another_sample_gives_is_not_made() -> None:
    samples = (X, RATE), (X, RATE, T([0.1, -0.2, 0.5]))
    report = check(op(cost, cost_without_first), *samples)
    assert red(report) == [("error", "GL401", "wrong gradient for `rate`")]
    assert made(report) == {}


def normed(ctx, x, norm=None):
    """Divides by the norm; norm: the precomputed norm of x, if known."""
    ctx.save_for_backward(x)
    return x / (x.norm() if norm is None else norm)


def normed_right(ctx, g):
    (x,) = ctx.saved_tensors
    n = x.norm()
    return g / n - x * (g * x).sum() / n**3, None


def centred(ctx, x, mean=None):
    if mean is None:
        mean = x.mean(0)
    ctx.count = len(x)
    return x - mean


def centred_right(ctx, g):
    return g - g.sum(0) / ctx.count, None


def filled(ctx, x, out=None):
    y = x.exp()
    if out is not None:
        out = out.detach().copy_(y) * 2
        y = out
    ctx.save_for_backward(x.exp())
    return y


def filled_right(ctx, g):
    return g * ctx.saved_tensors[0], None


@pytest.mark.parametrize(
    ("forward", "backward"),
    [(normed, normed_right), (centred, centred_right), (filled, filled_right)],
    ids=["said-to-be-computed", "computed-in-its-place", "written-to"],
)
def test_what_follows_from_others_is_not_made(forward: Any, backward: Any) -> None:
    report = check(op(forward, backward), (X,))
    assert red(report) == []
    assert made(report) == {}


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(weight)
        return (weight * x).sum()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class Weighted(nn.Module):
    def forward(self, x, weight=None):
        return x.sum() if weight is None else _Weighted.apply(x, weight)


def test_weight_without_a_gradient_is_a_constant() -> None:
    assert red(check(Weighted(), (X,))) == []


def test_shape_at_which_backward_agrees_comes_first() -> None:
    def per_batch(ctx, x, shift=None):
        ctx.shape = None if shift is None else shift.shape
        return x if shift is None else x + shift

    def per_batch_right(ctx, g):
        if ctx.shape is None:
            return g, None
        return g, g if len(ctx.shape) == 2 else g.sum(0).flip(0)

    report = check(op(per_batch, per_batch_right), (X,))
    assert red(report) == []


def softmaxed(ctx, x, scale=None):
    scale = x.shape[-1] ** -0.5 if scale is None else scale
    p = (scale * x).softmax(-1)
    ctx.scale = scale
    ctx.save_for_backward(p)
    return p


def softmaxed_at_default(ctx, g):
    (p,) = ctx.saved_tensors
    return p.shape[-1] ** -0.5 * p * (g - (p * g).sum(-1, keepdim=True)), None


def test_number_that_follows_from_sizes_alone_is_moved() -> None:
    report = check(op(softmaxed, softmaxed_at_default), (X,))
    assert [code for _, code, _ in red(report)] == ["GL401"]


def weighted(ctx, x, gain, bias=None, gate=None, mask=None):
    """x · gain, times what is given.

    x: (N, C)
    gain: (C,)
    bias: (C,) or None
    gate: (N, C) or None, constant
    mask: bool (N, C) or None
    """
    factor = torch.ones_like(x)
    if gate is not None:
        factor = factor * gate
    ctx.masked = mask is not None
    if mask is not None:
        factor = factor * mask
    ctx.save_for_backward(x, gain, factor, bias)
    y = x * gain * factor
    return y if bias is None else y + bias


def weighted_right(ctx, g):
    x, gain, factor, bias = ctx.saved_tensors
    of_bias = None if bias is None else g.sum(0)
    return g * gain * factor, (g * x * factor).sum(0), of_bias, None, None


def without_its_mask(ctx, g):
    found = weighted_right(ctx, g)
    return (found[0], (g * ctx.saved_tensors[0]).sum(0), *found[2:]) if ctx.masked else found


def test_what_inferred_inputs_leave_out_is_given():
    def inferred(thing: Any) -> TargetReport:
        return gradlint.check(thing, seed=0, order=1, select=["GL4"]).targets[0]

    report = inferred(op(weighted, weighted_right))
    assert {item.label: item.verdict for item in report.tried}["with `mask` given"] == "right"
    found = inferred(op(weighted, without_its_mask)).findings
    assert [item.message for item in found] == ["wrong gradient for `gain` with `mask` given"]


def decayed(ctx, x, rate, initial=None):
    """Sums x[t] + rate · y[t - 1] of x (T, A); before the first is `initial` (A,), or nothing."""
    last = torch.zeros_like(x[0]) if initial is None else initial
    rows = []
    for row in x:
        last = row + rate * last
        rows.append(last)
    ctx.save_for_backward(rate, torch.stack(rows), initial)
    return torch.stack(rows)


def _decayed(ctx, g, before):
    rate, y, initial = ctx.saved_tensors
    carry, of_x, of_rate = torch.zeros_like(g[0]), [], torch.zeros_like(rate)
    for step in reversed(range(len(g))):
        carry = carry + g[step]
        of_x.insert(0, carry)
        of_rate = of_rate + carry * (y[step - 1] if step else before)
        carry = rate * carry
    return torch.stack(of_x), of_rate, None if initial is None else carry


def decayed_right(ctx, g):
    initial = ctx.saved_tensors[2]
    return _decayed(ctx, g, torch.zeros_like(g[0]) if initial is None else initial)


def decayed_from_one(ctx, g):
    initial = ctx.saved_tensors[2]
    return _decayed(ctx, g, torch.ones_like(g[0]) if initial is None else initial)


@pytest.mark.parametrize(
    ("backward", "expected"),
    [
        (decayed_right, []),
        (decayed_from_one, [("warning", "GL401", "wrong gradient for `rate` without `initial`")]),
    ],
)
def test_what_is_given_is_left_out(backward: Any, expected: list[tuple[str, str, str]]) -> None:
    initial = T([0.4, -0.7, 1.2])
    report = check(op(decayed, backward), (X, RATE, initial))
    assert red(report) == expected
    assert "without `initial`" in [item.label for item in report.tried]
    # Another sample has none: there it is judged, and nothing is made for it.
    both = check(op(decayed, decayed_right), (X, RATE, initial), (X, RATE))
    assert "without `initial`" not in [item.label for item in both.tried]

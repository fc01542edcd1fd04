"""Inputs that follow from single words of documentation, or from how the code goes on."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.model.report import Finding
from gradlint.targets.build import from_object


def args(thing: Any) -> tuple[Any, ...]:
    return infer(from_object(thing))[0].args


def red(thing: Any, *select: str) -> list[Finding]:
    chosen = list(select) or ["GL1", "GL2", "GL3", "GL4", "GL7"]
    found = gradlint.check(thing, seed=0, order=1, select=chosen).findings
    return [item for item in found if item.severity != "info"]


class Envelope(Function):
    """Ramps at times t (N,); the others scalars."""

    @staticmethod
    def forward(ctx, t, attack, gain):
        ctx.save_for_backward(t, attack, gain)
        return gain * (t / attack).clamp(0, 1)

    @staticmethod
    def backward(ctx, g):
        t, attack, gain = ctx.saved_tensors
        ramp = (t / attack).clamp(0, 1)
        inside = g * gain * ((t > 0) & (t < attack))
        return inside / attack, -(inside * t).sum() / attack**2, (g * ramp).sum()


def test_the_others_are_scalars_and_stay_positive():
    t, attack, gain = args(Envelope)
    assert (t.dim(), attack.dim(), gain.dim()) == (1, 0, 0)
    # At −10 times its values a duration would be negative, and backward another one.
    assert red(Envelope) == []


class Adaptive(Function):
    """x (B, C, H, W), guide (B, F, H, W), weight (O, C, k, k); odd k, same size"""

    @staticmethod
    def forward(ctx, x, guide, weight):
        k = weight.size(-1)
        ctx.save_for_backward(x, guide, weight)
        gate = F.unfold(guide, k, padding=k // 2).sum(1) + guide.flatten(2).sum(1)
        return F.conv2d(x, weight, padding=k // 2) * gate.view(len(x), 1, *x.shape[2:])

    @staticmethod
    def backward(ctx, g):
        x, guide, weight = ctx.saved_tensors
        with torch.enable_grad():
            given = [value.detach().requires_grad_() for value in (x, guide, weight)]
            k = weight.size(-1)
            gate = F.unfold(given[1], k, padding=k // 2).sum(1) + given[1].flatten(2).sum(1)
            y = F.conv2d(given[0], given[2], padding=k // 2)
            y = y * gate.view(len(x), 1, *x.shape[2:])
        return torch.autograd.grad(y, given, g)


def test_odd_windows():
    x, guide, weight = args(Adaptive)
    assert weight.shape[-1] == weight.shape[-2]
    assert weight.shape[-1] % 2 == 1
    assert guide.shape[2:] == x.shape[2:]


class Blocks(Function):
    """x (N, D), layout (N / b, N / b) bool, True where a block is kept"""

    @staticmethod
    def forward(ctx, x, layout):
        b = len(x) // len(layout)
        full = layout.repeat_interleave(b, 0).repeat_interleave(b, 1).to(x.dtype)
        ctx.save_for_backward(full)
        return full @ x

    @staticmethod
    def backward(ctx, g):
        (full,) = ctx.saved_tensors
        return full.mT @ g, None


def test_a_quotient_by_what_no_axis_has_alone():
    x, layout = args(Blocks)
    assert layout.dtype == torch.bool
    assert layout.shape[0] == layout.shape[1] > 1
    assert len(x) % len(layout) == 0
    assert len(x) > len(layout)


class Bias(Function):
    """x (..., D), bias (D,)"""

    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, g):
        return g, g.reshape(-1, g.size(-1)).sum(0)


class BiasOfViews(Bias):
    """x (..., D), bias (D,)"""

    @staticmethod
    def backward(ctx, g):
        return g, g.view(-1, g.size(-1)).sum(0)


def test_any_number_of_axes_are_two():
    x, bias = args(Bias)
    assert x.dim() == 3
    assert bias.dim() == 1
    assert red(Bias) == []


def test_what_views_several_axes_as_one_is_told():
    assert {item.code for item in red(BiasOfViews)} <= {"GL702", "GL703", "GL701"}
    assert red(BiasOfViews) != []


class Shared(Function):
    """Points that share weights: channel i has weight i % c'."""

    grouped = False

    @staticmethod
    def forward(ctx, x, position, weight):
        # x: (n, c), position: (n, s, c), weight: (n, s, c')
        c = position.size(-1)
        ctx.save_for_backward(x, position, weight)
        return ((x[:, None] + position) * weight.repeat(1, 1, c // weight.size(-1))).sum(1)

    @classmethod
    def backward(cls, ctx, g):
        x, position, weight = ctx.saved_tensors
        n, s, c = position.shape
        few = weight.size(-1)
        of_position = g[:, None] * weight.repeat(1, 1, c // few)
        products = g[:, None] * (x[:, None] + position)
        if cls.grouped:
            of_weight = products.view(n, s, few, c // few).sum(3)
        else:
            of_weight = products.view(n, s, c // few, few).sum(2)
        return of_position.sum(1), of_position, of_weight


class Grouped(Shared):
    grouped = True


def test_several_tensors_are_longer_than_the_one_that_they_share():
    x, position, weight = args(Shared)
    assert x.shape[-1] == position.shape[-1] == 2 * weight.shape[-1]
    assert red(Shared) == []
    assert [(item.code, item.input) for item in red(Grouped)] == [("GL401", "weight")]


class Mixed(Function):
    """water, fat (V,) complex, field (V,) [Hz], te (E,) [s]"""

    @staticmethod
    def forward(ctx, water, fat, field, te):
        ctx.save_for_backward(water, fat, field, te)
        return (water + fat)[:, None] * torch.exp(1j * field[:, None] * te)

    @staticmethod
    def backward(ctx, g):
        water, fat, field, te = ctx.saved_tensors
        phase = torch.exp(1j * field[:, None] * te)
        back = g * phase.conj()
        inner = (g.conj() * (water + fat)[:, None] * phase * te).sum(1)
        return back.sum(1), back.sum(1), -inner.imag, None


def test_only_those_are_complex_of_which_it_is_said():
    water, fat, field, te = args(Mixed)
    assert water.is_complex()
    assert fat.is_complex()
    assert not field.is_complex()
    assert not te.is_complex()


class Comb(Function):
    """x (B, T) excitation, gain (B,), period in samples"""

    @staticmethod
    def forward(ctx, x, gain, period):
        y = x.clone()
        for n in range(x.size(1)):
            if n >= period:
                y[:, n] += gain * y[:, n - period]
        ctx.save_for_backward(gain, y)
        ctx.period = period
        return y

    @staticmethod
    def backward(ctx, g):
        gain, y = ctx.saved_tensors
        lam = g.clone()
        for n in range(g.size(1) - ctx.period - 1, -1, -1):
            lam[:, n] += gain * lam[:, n + ctx.period]
        cut = g.size(1) - ctx.period
        return lam, (lam[:, ctx.period :] * y[:, :cut]).sum(1) if cut > 0 else 0 * gain, None


def test_a_lag_is_an_integer_and_not_zero():
    assert type(args(Comb)[2]) is int
    tried = gradlint.check(Comb, seed=0, order=1, select=["GL4"]).targets[0]
    assert not any("period=0" in item.label for item in tried.tried)


class Gate(nn.Module):
    """Opens in time: timestamps (batch, 1) -> (batch, hidden)"""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.rand(hidden))

    def forward(self, t: Tensor) -> Tensor:
        return _Opened.apply(t, self.shift)


class _Opened(Function):
    @staticmethod
    def forward(ctx, t, shift):
        ctx.save_for_backward(t, shift)
        return torch.sin(t - shift)

    @staticmethod
    def backward(ctx, g):
        t, shift = ctx.saved_tensors
        slope = g * torch.cos(t - shift)
        return slope.sum(-1, keepdim=True), -slope.sum(0)


def test_the_shape_before_an_arrow_is_that_of_the_only_tensor():
    report = gradlint.check(Gate, seed=0, order=1, select=["GL2", "GL4"])
    assert report.ok
    (shape,) = [tuple(item.shape) for item in report.targets[0].samples[0].args if item.name == "t"]
    assert shape[-1] == 1


class _Decay(Function):
    @staticmethod
    def forward(ctx, x, a, h0):
        ctx.save_for_backward(x, a, h0)
        h = torch.zeros_like(x[:, 0]) if h0 is None else h0
        out = []
        for t in range(x.size(1)):
            h = a * h + x[:, t]
            out.append(h)
        return torch.stack(out, 1)

    @staticmethod
    def backward(ctx, g):
        x, a, h0 = ctx.saved_tensors
        with torch.enable_grad():
            given = [v.detach().requires_grad_() for v in (x, a, h0) if v is not None]
            h = torch.zeros_like(x[:, 0]) if h0 is None else given[2]
            out = []
            for t in range(x.size(1)):
                h = given[1] * h + given[0][:, t]
                out.append(h)
            found = torch.autograd.grad(torch.stack(out, 1), given, g)
        return found[0], found[1], found[2] if h0 is not None else None


class _Forgetful(_Decay):
    @staticmethod
    def backward(ctx, g):
        return (*_Decay.backward(ctx, g)[:2], None)


def decay(x: Tensor, a: Tensor, h0: Tensor | None = None) -> Tensor:
    """x (B, T, D), a (D,), h0 (B, D)"""
    return _Decay.apply(x, a, h0)


def forgetful(x: Tensor, a: Tensor, h0: Tensor | None = None) -> Tensor:
    """x (B, T, D), a (D,), h0 (B, D)"""
    return _Forgetful.apply(x, a, h0)


def test_an_optional_state_without_a_gradient_is_told():
    (finding,) = red(forgetful, "GL103")
    assert (finding.severity, finding.sample) == ("warning", "h0 given")
    assert red(decay) == []


class Spread(Function):
    """Adds v_j up at i. All (N, C); edges (2, E), j -> i."""

    @staticmethod
    def forward(ctx, gate, v, edges):
        ctx.save_for_backward(gate, v, edges)
        source, target = edges
        return torch.zeros_like(v).index_add(0, target, gate[target] * v[source])

    @staticmethod
    def backward(ctx, g):
        gate, v, edges = ctx.saved_tensors
        source, target = edges
        back = g[target]
        of_gate = torch.zeros_like(gate).index_add(0, target, back * v[source])
        return of_gate, torch.zeros_like(v).index_add(0, source, back * gate[target]), None


def test_all_is_said_of_those_without_a_shape_of_their_own():
    gate, v, edges = args(Spread)
    assert gate.shape == v.shape
    assert gate.dim() == 2
    assert edges.shape[0] == 2


class Remainder(Function):
    """What is left beside the top-K log-probabilities logp (T, K), in logarithms"""

    @staticmethod
    def forward(ctx, logp):
        ctx.save_for_backward(logp)
        return torch.log1p(-logp.exp().sum(-1))

    @staticmethod
    def backward(ctx, g):
        (logp,) = ctx.saved_tensors
        p = logp.exp()
        return -g[:, None] * p / (1 - p.sum(-1, keepdim=True))


def test_log_probabilities_may_leave_a_remainder():
    (logp,) = args(Remainder)
    assert float(logp.exp().sum(-1).max()) < 1
    assert red(Remainder) == []


class Gated(Function):
    @staticmethod
    def forward(ctx, x, row, col):
        ctx.save_for_backward(x, row, col)
        return x * row.sigmoid().unsqueeze(-1) * col.sigmoid().unsqueeze(-2)

    @staticmethod
    def backward(ctx, g):
        x, row, col = ctx.saved_tensors
        a, b = row.sigmoid().unsqueeze(-1), col.sigmoid().unsqueeze(-2)
        products = g * a * b * x
        return g * a * b, (products * (1 - a)).sum(-1), (products * (1 - b)).sum(-2)


def test_nobody_takes_the_sigmoid_of_indices():
    _, row, col = args(Gated)
    assert row.is_floating_point()
    assert col.is_floating_point()


class ChildSum(Function):
    """gates (N, H); child (E, H) one row each; parent (E,) long."""

    @staticmethod
    def forward(ctx, gates, child, parent):
        ctx.save_for_backward(parent)
        return gates.index_add(0, parent, child)

    @staticmethod
    def backward(ctx, g):
        (parent,) = ctx.saved_tensors
        return g, g[parent], None


def test_parents_of_rows_are_no_tree():
    gates, child, parent = args(ChildSum)
    assert int(parent.min()) >= 0
    assert int(parent.max()) < len(gates)
    assert len(child) == len(parent)


class _Overlap(Function):
    @staticmethod
    def forward(ctx, p, y):
        ctx.save_for_backward(p, y)
        return 1 - 2 * (p * y).sum() / (p + y).sum()

    @staticmethod
    def backward(ctx, g):
        p, y = ctx.saved_tensors
        both, all_of = (p * y).sum(), (p + y).sum()
        return -2 * g * (y / all_of - both / all_of**2), None


def overlap(p, y):
    return _Overlap.apply(p, y.to(p.dtype))


def overlap_of_numbers(p, y):
    return _Overlap.apply(p, y)


def test_what_is_only_cast_to_the_dtype_of_another_is_a_constant():
    assert red(overlap, "GL103") == []
    assert [item.input for item in red(overlap_of_numbers, "GL103")] == ["y"]


class Play(Function):
    """Play operator. u (B,) input, w (B,) half gap, y0 (B,) start -> (B,)."""

    @staticmethod
    def forward(ctx, u, w, y0):
        ctx.save_for_backward(u, w, y0)
        return torch.minimum(torch.maximum(y0, u - w), u + w)

    @staticmethod
    def backward(ctx, g):
        u, w, y0 = ctx.saved_tensors
        pushed, pulled = y0 < u - w, y0 > u + w
        moved = pushed | pulled
        return g * moved, g * pulled - g * pushed, g * ~moved


def test_a_gap_is_positive():
    assert float(args(Play)[1].min()) > 0

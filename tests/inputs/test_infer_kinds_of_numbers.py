"""Integers where a size is meant, real numbers where integers are refused."""

from __future__ import annotations

import math

import pytest
import torch

from gradlint.inputs._backward_returns import read_returned_to
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._infer import infer
from gradlint.inputs.documentation import names_axis
from gradlint.targets.build import from_object


def _places(length, out, like):
    i = torch.arange(out, dtype=like.dtype)
    return ((i + 0.5) * (length / out) - 0.5).clamp(0, length - 1).round().long()


class Resampled(torch.autograd.Function):
    """Nearest rows of a table, (L, D) -> (out, D)."""

    @staticmethod
    def forward(ctx, table, out):
        if out < 1:
            raise ValueError("out must be positive")
        ctx.save_for_backward(table)
        ctx.places = _places(len(table), out, table)
        return table[ctx.places]

    @staticmethod
    def backward(ctx, g):
        (table,) = ctx.saved_tensors
        return torch.zeros_like(table).index_add(0, ctx.places, g), None


class Centred(torch.autograd.Function):
    """The distance of one vector to the mean of another of its shape."""

    @staticmethod
    def forward(ctx, prediction, target):
        if prediction.shape != target.shape:
            raise ValueError("one shape")
        ctx.save_for_backward(prediction)
        return prediction - target.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g, -g.sum(-1, keepdim=True).expand(g.shape) / g.shape[-1]


def test_an_axis_of_a_documented_shape_is_an_integer():
    assert type(infer(from_object(Resampled))[0].args[1]) is int


def test_integers_that_are_refused_become_real_numbers():
    sample = infer(from_object(Centred))[0]
    assert [value.dtype for value in sample.args] == [torch.float64] * 2


@pytest.mark.parametrize(
    ("text", "name", "is_axis"),
    [
        ("(L, D) -> (out, D)", "out", True),
        ("x (B, T), rate", "rate", False),
        ("f(alpha, beta)", "alpha", False),
        ("(*, D)", "D", True),
    ],
)
def test_axes_are_named_in_shapes(text, name, is_axis):
    assert names_axis(text, name) is is_axis


class Scaled(torch.autograd.Function):
    """Only backward computes with ``g``, which is the usual name of a function."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.kept = x, g
        return x.square()

    @staticmethod
    def backward(ctx, grad):
        x, g = ctx.kept
        return 2 * grad * x * g, None


class Applied(Scaled):
    """Here it is one."""

    @staticmethod
    def forward(ctx, x, g):
        ctx.save_for_backward(x)
        return g(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.ones_like(*ctx.saved_tensors), None


def test_what_is_computed_with_is_no_function() -> None:
    assert not callable(infer(from_object(Scaled), 0)[0].args[1])
    assert callable(infer(from_object(Applied), 0)[0].args[1])


class Volumes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, verts, tets):
        ctx.save_for_backward(verts, tets)
        a, b, c, d = verts[tets].unbind(-2)
        return ((a - d) * torch.linalg.cross(b - d, c - d)).sum(-1) / 6

    @staticmethod
    def backward(ctx, g):
        verts, tets = ctx.saved_tensors
        a, b, c, d = verts[tets].unbind(-2)
        g = g[:, None] / 6
        ga = g * torch.linalg.cross(b - d, c - d)
        gb = g * torch.linalg.cross(c - d, a - d)
        gc = g * torch.linalg.cross(a - d, b - d)
        gd = -(ga + gb + gc)
        found = torch.stack([ga, gb, gc, gd], 1).reshape(-1, 3)
        return torch.zeros_like(verts).index_add(0, tets.reshape(-1), found), None


def test_vertices_are_rows_and_cells_are_rows_of_their_numbers() -> None:
    verts, tets = infer(from_object(Volumes), 0)[0].args
    assert verts.shape[1:] == (3,)
    assert (tets.dtype, tets.dim(), tets.shape[1]) == (torch.int64, 2, 4)


_TAKES = (
    "backward(): incompatible function arguments. The following argument types are supported:\n"
    "    1. (arg0: torch.Tensor, arg1: {})  -> torch.Tensor\n\nInvoked with: ..."
)


def _compiled(grad, low, high, kinds):
    """As a function of a compiled extension, which says what it takes."""
    integers = "SupportsInt" in kinds
    if integers and not (type(low) is type(high) is int):
        raise TypeError(_TAKES.format(kinds))
    if not integers and not (type(low) is type(high) is float and low < high):
        raise TypeError(_TAKES.format(kinds))
    return grad * (high - low)


class OfLevels(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low_level, high_level):
        ctx.levels = low_level, high_level
        return x * (high_level - low_level)

    @staticmethod
    def backward(ctx, grad):
        low, high = ctx.levels
        taken = "typing.SupportsInt | typing.SupportsIndex"
        return _compiled(grad, low, high, taken), None, None


class OfFractions(OfLevels):
    @staticmethod
    def backward(ctx, grad):
        return _compiled(grad, *ctx.levels, "typing.SupportsFloat | int"), None, None


def of_levels(x, low_level, high_level):
    return OfLevels.apply(x, low_level, high_level)


@pytest.mark.parametrize("op", [OfLevels, of_levels])
def test_integers_where_a_compiled_function_takes_nothing_else(op):
    _, *levels = infer(from_object(op), 0)[0].args
    assert [type(level) for level in levels] == [int, int]


def test_fractions_where_a_compiled_function_takes_them():
    _, *levels = infer(from_object(OfFractions), 0)[0].args
    assert [type(level) for level in levels] == [float, float]


def _backward(ctx, grad):
    return grad, None, None


def test_what_a_function_inside_has_no_gradient_for_is_rather_a_number():
    passed = [Evidence("x"), Evidence("low"), Evidence("high")]
    for item in passed[:2]:
        item.say("float", 0.4)  # less than nothing at all speaks for a tensor
        assert item.ordered_kinds()[0] == ("tensor", 0.0)
    read_returned_to(_backward, passed)
    assert [item.ordered_kinds()[0][0] for item in passed] == ["tensor", "float", "tensor"]


class Discounted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S, r):
        ctx.save_for_backward(S, r)
        return S * torch.exp(-r)

    @staticmethod
    def backward(ctx, g):
        (_, r) = ctx.saved_tensors
        return g * torch.exp(-r), None


def discounted(spot, rate):
    """spot (N,), rate () -> values (N,)"""
    return Discounted.apply(spot, rate)


def test_a_rate_without_a_gradient_is_still_no_integer():
    sample = infer(from_object(discounted), 0)[0]
    spot, rate = sample.args
    assert (spot.dim(), rate.dim()) == (1, 0)
    assert (rate.dtype, rate.requires_grad) == (torch.float64, True)


class Decibels(torch.autograd.Function):
    """Of a power spectrogram."""

    @staticmethod
    def forward(ctx, S):
        ctx.save_for_backward(S)
        return 10 * S.clamp(min=1e-10).log10()

    @staticmethod
    def backward(ctx, g):
        (S,) = ctx.saved_tensors
        return g * (S > 1e-10) * 10 / (math.log(10) * S.clamp(min=1e-10))


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s, (g * x).sum()


def test_a_capital_has_axes_and_a_scale_may_have_none():
    (S,) = infer(from_object(Decibels), 0)[0].args
    assert S.dim() > 0
    assert infer(from_object(Scaled), 0)[0].args[1].dim() == 0


class Apart(torch.autograd.Function):
    """Squares of differences that are broadcast."""

    @staticmethod
    def forward(ctx, a, b, scale=1.0):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        return scale * (a - b).square()

    @staticmethod
    def backward(ctx, g):
        if not any(ctx.needs_input_grad):
            return None, None, None
        a, b = ctx.saved_tensors
        g = 2 * g * ctx.scale * (a - b)
        return (*(part.sum_to_size(x.shape) for part, x in ((g, a), (-g, b))), None)


class OfOneOnly(Apart):
    """The other one is held constant."""

    @staticmethod
    def backward(ctx, g):
        if not ctx.needs_input_grad[0]:
            return None, None, None
        a, b = ctx.saved_tensors
        return (2 * g * ctx.scale * (a - b), None, None)


@pytest.mark.parametrize(("op", "expected"), [(Apart, [True, True]), (OfOneOnly, [True, False])])
def test_an_early_return_of_nothing_says_nothing(op, expected):
    args = infer(from_object(op), 0)[0].args
    assert [arg.requires_grad for arg in args[:2]] == expected

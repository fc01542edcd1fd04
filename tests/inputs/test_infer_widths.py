"""Arguments that are called axes and are widths; shapes that end in any number of axes."""

from __future__ import annotations

import pytest
import torch

from gradlint.inputs._infer import infer
from gradlint.inputs.documentation import starred_rank
from gradlint.targets.build import from_object


class Turned(torch.autograd.Function):
    """Turns the first channels."""

    @staticmethod
    def forward(ctx, x, rotary_dim: int, interleaved: bool = False):
        if rotary_dim % 2:
            raise ValueError("rotary_dim must be even")
        part, rest = x[..., :rotary_dim], x[..., rotary_dim:]
        if interleaved:
            part = torch.stack((-part[..., 1::2], part[..., 0::2]), -1).flatten(-2)
        else:
            a, b = part.chunk(2, -1)
            part = torch.cat((-b, a), -1)
        return torch.cat((part, rest), -1)

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class TurnedByAngles(torch.autograd.Function):
    """Turns the first channels, of which there are as many as are counted."""

    @staticmethod
    def forward(ctx, x, positions, rotary_dim):
        rate = 100.0 ** (-torch.arange(0, rotary_dim, 2).to(x) / rotary_dim)
        angle = positions[:, None] * rate
        ctx.cos, ctx.sin = angle.cos(), angle.sin()
        a, b, rest = x.split((angle.shape[1], angle.shape[1], x.shape[1] - 2 * angle.shape[1]), 1)
        return torch.cat((a * ctx.cos - b * ctx.sin, a * ctx.sin + b * ctx.cos, rest), 1)

    @staticmethod
    def backward(ctx, g):
        n = ctx.cos.shape[1]
        a, b, rest = g.split((n, n, g.shape[1] - 2 * n), 1)
        turned = torch.cat((a * ctx.cos + b * ctx.sin, b * ctx.cos - a * ctx.sin, rest), 1)
        return turned, None, None


class Summed(torch.autograd.Function):
    """A sum along one axis."""

    @staticmethod
    def forward(ctx, x, sum_dim: int):
        ctx.shape, ctx.sum_dim = x.shape, sum_dim
        return x.sum(sum_dim)

    @staticmethod
    def backward(ctx, g):
        return g.unsqueeze(ctx.sum_dim).expand(ctx.shape), None


def test_what_elements_are_taken_up_to_is_a_width():
    x, width, _ = infer(from_object(Turned))[0].args
    assert width == 4
    assert x.shape[-1] >= 4


def test_what_is_counted_up_to_is_a_width():
    x, _, width = infer(from_object(TurnedByAngles), 0)[0].args
    assert width == 4
    assert x.shape[1] >= 4


class OfBox(torch.autograd.Function):
    """Distances of points (N, D) to a box, half_size (D,)."""

    @staticmethod
    def forward(ctx, points, half_size):
        ctx.save_for_backward(points)
        return (points.abs() - half_size).sum(-1)

    @staticmethod
    def backward(ctx, g):
        (points,) = ctx.saved_tensors
        return g[:, None] * points.sign(), -g.sum().expand(points.shape[1])


def test_sizes_of_things_are_positive():
    points, half_size = infer(from_object(OfBox), 0)[0].args
    assert float(half_size.detach().min()) > 0.0
    assert float(points.detach().min()) < 0.0


def test_what_is_summed_along_is_an_axis():
    assert infer(from_object(Summed))[0].args[1] in (-1, 0, 1)


class Standardized(torch.autograd.Function):
    """Over the spatial axes of (N, C, *)."""

    @staticmethod
    def forward(ctx, x, unbiased=False):
        flat = x.reshape(x.size(0), x.size(1), -1)
        return flat - flat.mean(-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g - g.mean(-1, keepdim=True), None


def test_spatial_axes_are_there():
    assert infer(from_object(Standardized))[0].args[0].dim() >= 3


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("the statistics of (N, C, *)", 3),
        ("of shape (B, C, ...), any number of axes", 3),
        ("x: (N, *)", 0),
        ("x: (*, C, D)", 0),
        ("(N, C, H)", 0),
    ],
)
def test_a_star_stands_for_one_axis_after_two_others(text, rank):
    assert starred_rank(text) == rank

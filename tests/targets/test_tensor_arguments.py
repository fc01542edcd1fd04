"""Tensors that a constructor takes: their types and shapes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import gradlint
from gradlint.targets._construct import construct
from gradlint.targets._tensor_arguments import TensorForm, made, size_named, tensor_forms


def module(text: str) -> type:
    return type("Module", (nn.Module,), {"__doc__": text, "__init__": lambda self: None})


@pytest.mark.parametrize(
    ("text", "name", "form"),
    [
        ("links: (links, 2) integer, each once.", "links", TensorForm("int", ("links", "2"))),
        ("Args:\n    table (Tensor): [rows, width] weights.", "table", ("rows", "width")),
        ("Uses `basis` of shape (n, k). Other (a, b).", "basis", ("n", "k")),
        ("keep: bool, (n,).", "keep", TensorForm("bool", ("n",))),
        ("Smooths along faces.", "faces", TensorForm("int", ("faces.0", "3"))),
        ("Smooths.", "edge_pairs", TensorForm("int", ("edge_pairs.0", "2"))),
        ("Multiplies.", "cols", TensorForm("int", ("cols.0",))),
        ("Sums messages.", "src", TensorForm("int", ("src.0",))),
        ("Smooths.", "parent", TensorForm("int", ("parent.0",))),
        ("Smooths.", "key_mask", TensorForm("bool", ("key_mask.0",))),
        ("scale (n,), a factor.", "scale", TensorForm("float", ("n",), True)),
        ("mass: (n,), positive.", "mass", TensorForm("float", ("n",), True)),
        ("mass: (n,) > 0.", "mass", TensorForm("float", ("n",), True)),
        ("mass: (n,), non-positive.", "mass", ("n",)),
        ("mass: (n,) > 0.5 off.", "mass", ("n",)),
        ("scaler: (n,), any.", "scaler", ("n",)),
        # Nothing is said of these.
        ("Multiplies by weight.", "weight", None),
        ("scale (Tensor, optional): a factor.", "scale", None),
        ("width: how wide. order (a, b): other.", "width", None),
        ("knowledge of edges_count.", "edge_scale", None),
    ],
)
def test_forms(text, name, form):
    expected = TensorForm("float", form) if isinstance(form, tuple) else form
    assert tensor_forms(module(text), [name]) == ({} if expected is None else {name: expected})


def test_integers_point_below_a_bound_and_rows_hold_different_ones():
    found = made(TensorForm("int", ("n", "2")), {"n": 5}, 3)
    assert found.tolist() == [[0, 1], [1, 2], [2, 0], [0, 1], [1, 2]]
    assert made(TensorForm("int", ("n",)), {"n": 4}, 3).tolist() == [0, 1, 2, 0]
    assert made(TensorForm("bool", ("n",)), {"n": 4}, 3).tolist() == [True, False, True, True]
    assert made(TensorForm("float", ("n", "3")), {"n": 4}, 3).shape == (4, 3)


class Diffusion(nn.Module):
    """Diffusion on a graph. links: (links, 2) integer, the two ends of each link."""

    def __init__(self, links: Tensor, count: int, rate: float = 0.1):
        super().__init__()
        degree = torch.zeros(count).index_add(0, links.reshape(-1), torch.ones(links.numel()))
        self.register_buffer("links", links)
        self.register_buffer("degree", degree)


class Projection(nn.Module):
    """Projects onto the columns of basis (count, rank) with offset (count,)."""

    def __init__(self, basis: Tensor, offset: Tensor, count: int):
        super().__init__()
        if basis.shape[0] != count or offset.shape != (count,):
            raise ValueError("one row for each")
        self.register_buffer("basis", basis)


class Normalise(nn.Module):
    """Subtracts mean and divides by std."""

    def __init__(self, mean: Tensor, std: Tensor):
        super().__init__()
        if mean.shape != std.shape:
            raise ValueError("one mean for each deviation")


def test_indices_point_into_the_count_of_the_constructor():
    _, chosen = construct(Diffusion)
    assert chosen["links"].dtype == torch.int64
    assert chosen["links"].shape[1] == 2
    assert int(chosen["links"].max()) < chosen["count"]


def test_axes_named_after_an_argument_have_its_value():
    _, chosen = construct(Projection)
    assert chosen["basis"].shape[0] == chosen["count"] == len(chosen["offset"])
    assert chosen["basis"].shape[1] != chosen["count"]


def test_tensors_of_which_nothing_is_said_have_one_size():
    _, chosen = construct(Normalise)
    assert chosen["mean"].shape == chosen["std"].shape == (4,)


@pytest.mark.parametrize(
    ("axis", "names", "found"),
    [
        ("out", ["in_features", "out_features"], "out_features"),
        ("C_in", ["in_channels", "out_channels"], "in_channels"),
        ("C", ["channels", "kernel"], "channels"),
        ("heads", ["n_heads", "dim"], "n_heads"),
        # Several, none, and a letter that is a number of its own.
        ("out", ["out_rows", "out_columns"], None),
        ("features", ["in_features"], None),
        ("count", ["counts"], None),
        ("O", ["out_features", "in_features"], None),
        ("N", ["num_heads"], None),
    ],
)
def test_sizes_that_an_axis_is_short_for(axis, names, found):
    assert size_named(axis, names) == found


class Rescaled(nn.Module):
    """Linear; ``scale`` (out,) is calibrated."""

    slope = 1.0

    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features))
        self.register_buffer("scale", scale)

    def forward(self, x):
        return Root.apply(x @ self.weight.mT, self.scale, self.slope)


class Doubled(Rescaled):
    """Linear; ``scale`` (out,) is calibrated."""

    slope = 2.0


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y, scale, slope):
        ctx.save_for_backward(scale)
        ctx.slope = slope
        return y * scale.sqrt()

    @staticmethod
    def backward(ctx, grad):
        (scale,) = ctx.saved_tensors
        return ctx.slope * grad * scale.sqrt(), None, None


def test_a_buffer_has_the_size_that_is_said_of_it_and_scales_are_positive():
    _, chosen = construct(Rescaled)
    assert chosen["scale"].shape == (chosen["out_features"],)
    assert chosen["in_features"] != chosen["out_features"]
    assert float(chosen["scale"].min()) > 0
    assert gradlint.check(Rescaled, order=1, seed=0).ok
    found = gradlint.check(Doubled, order=1, seed=0).findings
    assert [(f.code, f.cause, f.input) for f in found if f.severity == "error"] == [
        ("GL401", "scaled", "x"),
        ("GL401", "scaled", "weight"),
    ]


class Diffusing(nn.Module):
    """Signals of directions."""

    def __init__(self, strengths, directions, floor):
        super().__init__()
        b = torch.as_tensor(strengths, dtype=torch.float64)
        x, y, z = torch.as_tensor(directions, dtype=torch.float64).unbind(1)
        self.register_buffer("design", b[:, None] * torch.stack([x * x, y * y, z * z], 1))
        self.floor = nn.Parameter(torch.tensor(floor))

    def forward(self, d):
        return d @ self.design.mT + self.floor


def test_what_is_unbound_or_indexed_after_a_tensor_is_made_of_it_is_one():
    module, chosen = construct(Diffusing)
    strengths, directions = chosen["strengths"], chosen["directions"]
    assert directions.shape == (len(strengths), 3)
    assert strengths.dim() == 1
    assert not isinstance(chosen["floor"], Tensor)
    assert module.design.shape == directions.shape


class Blend(nn.Module):
    def __init__(self, models):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(models))

    def forward(self, x):
        return torch.einsum("m,mb->b", torch.softmax(self.logits, 0), x)


def test_what_sizes_a_tensor_is_a_number():
    module, chosen = construct(Blend)
    assert type(chosen["models"]) is int
    assert module.logits.shape == (chosen["models"],)


class Observer(nn.Module):
    """Observer.

    :param int n: states
    :param int p: outputs
    """

    def __init__(self, n, p):
        super().__init__()
        self.gain = nn.Parameter(torch.zeros((n, p)))

    def forward(self, x):
        return x @ self.gain


def test_types_that_documentation_gives():
    _, chosen = construct(Observer)
    assert {name: type(value) for name, value in chosen.items()} == {"n": int, "p": int}

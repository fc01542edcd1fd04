"""Values and sizes of inferred tensors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from gradlint.inputs import _names
from gradlint.inputs._infer import infer
from gradlint.inputs._plan import GroupGuess, Omitted, Plan, TensorGuess, ValueGuess, axes
from gradlint.inputs.domains import DOMAINS
from gradlint.inputs.resized import resized
from gradlint.inputs.values import build, spread
from gradlint.targets.build import from_object


def drawn(domain: str, *shape: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return spread(domain, list(shape), count, torch.Generator().manual_seed(5))


def test_reals_are_away_from_zero_and_from_each_other():
    values = drawn("real", 6, 10).flatten().sort().values
    assert float(values.abs().min()) > 0.1
    assert float(values.diff().min()) > 0.01
    assert -0.5 < float(values.mean()) < 0.5
    assert float(values.min()) < -1
    assert float(values.max()) > 1


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [("positive", 0.2, 2.5), ("unit", 0.05, 0.95), ("small", -0.9, 0.9), ("above", 1.1, 4.0),
     ("negative", -2.5, -0.2)],
)  # fmt: skip
def test_bounded_domains(domain, low, high):
    values = drawn(domain, 4, 7)
    assert low < float(values.min())
    assert float(values.max()) < high
    assert domain in DOMAINS


def test_structured_domains():
    rows = drawn("rows", 3, 5)
    assert torch.allclose(rows.sum(-1), torch.ones(3, dtype=torch.float64))
    lengths = drawn("lengths", 3, 5)
    assert torch.allclose(lengths.norm(dim=-1), torch.ones(3, dtype=torch.float64))
    matrix = drawn("spd", 4, 4)
    assert torch.allclose(matrix, matrix.mT)
    assert float(torch.linalg.eigvalsh(matrix).min()) > 0.1
    lower = drawn("tril", 4, 4)
    assert torch.equal(lower, lower.tril())
    assert float(lower.diagonal().min()) > 0
    assert torch.equal(drawn("lower", 4, 4), lower)
    upper = drawn("upper", 4, 4)
    assert torch.equal(upper, upper.triu())
    assert float(upper.diagonal().min()) > 0
    skew = drawn("skew", 4, 4)
    assert torch.equal(skew, -skew.mT)
    for domain, values in (("binary", {0.0, 1.0}), ("signs", {-1.0, 1.0})):
        assert all(set(row.tolist()) == values for row in drawn(domain, 3, 5))


def test_a_scalar_is_not_zero():
    assert 0.3 < abs(float(drawn("real"))) < 2


def test_every_axis_has_its_own_size():
    plan = Plan(("x", "y"), (TensorGuess(axes("x", 3)), TensorGuess(axes("y", 2))))
    assert len(set(plan.sizes().values())) == 5
    tied = plan.tied("x.1", "y.0")
    assert tied.sizes()["x.1"] == tied.sizes()[tied.guess("y").axes[0]]
    fixed = plan.sized("x.0", 5)
    assert list(fixed.sizes().values()).count(5) == 1


def test_small_sizes_differ_within_a_tensor_and_at_the_same_place():
    guesses = (TensorGuess(("b", "h", "t", "d")), TensorGuess(("b", "h", "s", "d")))
    sizes = Plan(("q", "k"), guesses, pool=()).sizes()
    assert len({sizes[a] for a in "bhtd"}) == 4
    assert sizes["s"] != sizes["t"]
    assert max(sizes.values()) <= 6


def test_built_arguments():
    guesses = (
        TensorGuess(axes("x", 2)),
        TensorGuess(("=3",), "int", grad=False),
        ValueGuess([1, 2]),
        GroupGuess((TensorGuess(axes("g0", 1)), TensorGuess(axes("g1", 1))), dict, ("a", "b")),
        Omitted(),
        ValueGuess("shape", "shape-of"),
        ValueGuess(0.5),
    )
    names = ("x", "index", "numbers", "group", "skipped", "size", "scale")
    plan = Plan(names, guesses)
    built = build(plan, 1, frozenset({"scale"}))
    x, index, numbers, group = built.args
    assert x.requires_grad
    assert index.shape == (3,)
    assert not index.requires_grad
    assert numbers == [1, 2]
    assert numbers is not guesses[2].value
    assert list(group) == ["a", "b"]
    # What comes after an omitted parameter goes by name.
    assert built.kwargs == {"size": tuple(x.shape), "scale": 0.5}


def test_plans_that_look_the_same_are_the_same():
    plan = Plan(("x", "y"), (TensorGuess(axes("x", 1)), TensorGuess(axes("y", 1))))
    tied, sized = plan.tied("x.0", "y.0"), plan.sized("y.0", plan.sizes()["x.0"])
    assert tied != sized
    assert tied.arguments_key() == plan.tied("y.0", "x.0").arguments_key()


class ByDegree(torch.autograd.Function):
    """Weights over the sum of those that enter the same node: constant where nodes have one."""

    @staticmethod
    def forward(ctx, weight, index):
        weight = weight.abs()
        total = weight.new_zeros(3).index_add(0, index, weight)
        ctx.save_for_backward(weight, index, total)
        return weight / total[index]

    @staticmethod
    def backward(ctx, g):
        weight, index, total = ctx.saved_tensors
        inner = torch.zeros_like(total).index_add(0, index, g * weight / total[index] ** 2)
        return g / total[index] - inner[index], None


@pytest.mark.parametrize("seed", range(8))
def test_indices_at_which_a_gradient_vanishes_are_drawn_again(seed):
    weight, index = infer(from_object(ByDegree), seed)[0].args
    assert index.unique().numel() < index.numel()
    assert weight.requires_grad


class Boxed(torch.autograd.Function):
    """Positions in a box. pos: (N, D), box: D edges."""

    @staticmethod
    def forward(ctx, pos: torch.Tensor, box: Sequence[float], least: float = 2.5):
        if min(box) < 2 * least:
            raise ValueError("box too small")
        edge = torch.tensor(box, dtype=pos.dtype)
        ctx.save_for_backward(edge)
        return pos / edge

    @staticmethod
    def backward(ctx, grad):
        return grad / ctx.saved_tensors[0], None, None


class Spaced(Boxed):
    @staticmethod
    def forward(ctx, pos: torch.Tensor, spacing: tuple[float, float], least: float = 0.0):
        return Boxed.forward(ctx, pos, spacing, least)


def test_a_list_of_numbers_has_one_for_each_coordinate():
    pos, box, *_ = infer(from_object(Boxed), 0)[0].args
    assert pos.dim() == 2
    assert len(box) == pos.shape[1]
    assert len(set(box)) == len(box)
    assert min(box) >= 5


def test_a_tuple_of_numbers_has_the_length_of_its_annotation():
    pos, spacing, *_ = infer(from_object(Spaced), 0)[0].args
    assert type(spacing) is tuple
    assert len(spacing) == pos.shape[-1] == 2


class Delayed(torch.autograd.Function):
    """x shifted by a number of places that is rounded down: never a negative one."""

    @staticmethod
    def forward(ctx, x, shift):
        ctx.count = x.shape[0]
        places = torch.arange(len(x)) - shift.floor().long()
        return x[:, None].repeat(1, 2).gather(0, places.clamp(min=0)[:, None].expand(-1, 2))

    @staticmethod
    def backward(ctx, g):
        return g.new_zeros(ctx.count) + g.sum() / ctx.count, g.sum()


def test_numbers_of_which_indices_are_made_are_positive() -> None:
    (found, *_) = infer(from_object(Delayed), seed=0)
    assert bool((found.args[1] > 0).all())


@pytest.mark.parametrize(
    ("name", "domain", "rank"),
    [("cutpoints", "ordered", 1), ("knots", "ordered", 1), ("bin_edges", "ordered", 1),
     ("points", "real", 3), ("volume", "real", 5)],
)  # fmt: skip
def test_names_of_what_increases(name: str, domain: str, rank: int) -> None:
    assert _names.domain(name) == domain
    assert next(iter(_names.rank_weights(name))) == rank


def between(x: torch.Tensor, knots: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - knots).relu().sum(1)


def test_what_increases_does_so_at_other_sizes() -> None:
    sample = infer(from_object(between), seed=0)[0]
    assert sample.increasing == (1,)
    longer = resized(sample, {(1, 0): 9}, seed=0)
    assert longer is not None
    assert bool((longer.args[1].diff() > 0).all())


def test_a_volatility_is_no_volume() -> None:
    assert 5 not in _names.rank_weights("vol")


class Alignments(torch.autograd.Function):
    """-log of how likely the labels are: infinite where the first of three or more of them is not
    the largest."""

    @staticmethod
    def forward(ctx, scores, labels):
        ctx.save_for_backward(labels)
        ctx.shape = scores.shape
        steps = scores.gather(1, labels[:, None])[:, 0]
        possible = torch.as_tensor(len(labels) > 2) & (labels[0] == labels.max())
        return -steps.sum() + torch.where(possible, 0.0, torch.inf)

    @staticmethod
    def backward(ctx, grad):
        (labels,) = ctx.saved_tensors
        return -grad * torch.zeros(ctx.shape).double().scatter(1, labels[:, None], 1.0), None


class NeverFinite(Alignments):
    @staticmethod
    def forward(ctx, scores, labels):
        return Alignments.forward(ctx, scores, labels) - torch.inf


@pytest.mark.parametrize("seed", range(10))
def test_integers_are_drawn_until_outputs_are_finite(seed):
    sample, *_ = infer(from_object(Alignments, name="Alignments"), seed)
    assert bool(Alignments.apply(*sample.args, **sample.kwargs).isfinite())
    again, *_ = infer(from_object(Alignments, name="Alignments"), seed)
    assert torch.equal(again.args[1], sample.args[1])


def test_outputs_that_are_never_finite_are_said_to_be():
    sample, *_ = infer(from_object(NeverFinite, name="NeverFinite"), 0)
    assert "outputs are not finite in any domain that was tried" in sample.notes


def test_limits_of_iterations_are_not_reached_and_no_limits_of_values() -> None:
    assert _names.ints("max_iter")[0] == _names.ints("max_iterations")[0] == 50
    assert _names.ints("min_iter")[0] == 1
    assert _names.ints("n_iter")[0] == 6
    assert (_names.ints("max_value")[0], _names.ints("min_value")[0]) == (3, -2)

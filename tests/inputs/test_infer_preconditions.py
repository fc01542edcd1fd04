"""Preconditions that random values never meet are found from words, conditions and names."""

from __future__ import annotations

import dataclasses
import itertools
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.autograd import Function

import gradlint
from gradlint.inputs._infer import infer
from gradlint.inputs._iterations import iterated_matrices
from gradlint.inputs.domains import DOMAINS, OF_SQUARES, worded
from gradlint.inputs.values import spread
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


def inferred(thing: object) -> Sample:
    return infer(from_object(thing), 0)[0]


def first(thing: object) -> Tensor:
    return next(part for part in inferred(thing).args if isinstance(part, Tensor))


class Checked(Function):
    """Passes its input on; subclasses refuse what does not meet their condition."""

    @classmethod
    def check(cls, x: Tensor) -> None:
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad):
        return grad


class Sorted(Checked):
    @staticmethod
    def forward(ctx, x):
        if not torch.equal(x, x.sort().values):
            raise ValueError("wrong order")
        return x * 1


class Rotation(Checked):
    @staticmethod
    def forward(ctx, x):
        assert torch.allclose(x @ x.mT, torch.eye(len(x), dtype=x.dtype))
        return x * 1


class Distribution(Checked):
    @staticmethod
    def forward(ctx, x):
        if not torch.allclose(x.sum(-1), torch.ones_like(x[..., 0])):
            raise ValueError("bad input")
        return x * 1


class Directions(Checked):
    @staticmethod
    def forward(ctx, x):
        if ((x.norm(dim=-1) - 1).abs() > 1e-6).any():
            raise ValueError("bad input")
        return x * 1


class Told(Checked):
    @staticmethod
    def forward(ctx, x):
        if torch.linalg.eigvals(x).abs().max() >= 1:
            raise RuntimeError("the iteration does not converge")
        return x * 1


class Untold(Checked):
    """Nothing says which values are wanted."""

    @staticmethod
    def forward(ctx, x):
        if bool(torch.floor(x).any()):
            raise ValueError("no")
        return x * 1


@pytest.mark.parametrize(
    ("op", "holds"),
    [
        (Sorted, lambda x: bool((x.diff(dim=-1) > 0).all())),
        (Rotation, lambda x: torch.allclose(x @ x.mT, torch.eye(len(x), dtype=x.dtype))),
        (Distribution, lambda x: torch.allclose(x.sum(-1), torch.ones_like(x[..., 0]))),
        (Directions, lambda x: torch.allclose(x.norm(dim=-1), torch.ones_like(x[..., 0]))),
        (Told, lambda x: bool(torch.linalg.eigvals(x).abs().max() < 1)),
        (Untold, lambda x: bool((x > 0).all() and (x < 1).all())),
    ],
)
def test_a_condition_on_values_is_met(op, holds):
    assert holds(first(op))


class Started(Checked):
    @staticmethod
    def forward(ctx, x, mask):
        if not bool(mask[:, 0].all()):
            raise ValueError("the first step of every row must be there")
        return x.masked_fill(~mask, 0.0)

    @staticmethod
    def backward(ctx, g):
        return g, None


class Observed(Checked):
    @staticmethod
    def forward(ctx, x, mask):
        count = mask.sum(0)
        if bool((count < 2).any()):
            raise ValueError("every column needs two observed values")
        return (x * mask).sum(0) / count

    @staticmethod
    def backward(ctx, g):
        return g, None


class Whole(Checked):
    @staticmethod
    def forward(ctx, x, valid):
        if not bool(valid.all()):
            raise ValueError("gaps are not supported")
        return x.masked_fill(~valid, 0.0)

    @staticmethod
    def backward(ctx, g):
        return g, None


@pytest.mark.parametrize(("op", "kept"), [(Started, False), (Observed, False), (Whole, True)])
def test_a_mask_is_true_where_a_condition_asks_for_it(op, kept):
    (sample, *_) = infer(from_object(op), 0)
    _, mask = sample.args
    assert mask.dtype == torch.bool
    assert bool(mask.all()) is kept


class Shares(Checked):
    @staticmethod
    def forward(ctx, amount, price, group):
        total = amount.new_zeros(amount.shape[0], price.shape[0])
        total = total.index_add(1, group, amount)
        spent = total @ price
        if bool((spent <= 0).any()):
            raise ValueError("every row needs some money")
        return total / spent[:, None]

    @staticmethod
    def backward(ctx, g):
        return None, None, None


def test_what_is_computed_of_several_is_positive_where_all_are():
    (sample, *_) = infer(from_object(Shares), 0)
    amount, price, group = sample.args
    assert bool((amount > 0).all() and (price > 0).all())
    assert amount.shape[1] == len(group)


class Rows(Checked):
    @staticmethod
    def forward(ctx, values, offsets, columns):
        if int(offsets[0]) != 0 or bool((offsets.diff() < 0).any()):
            raise ValueError("offsets must start at zero and not decrease")
        if values.shape != columns.shape:
            raise ValueError("one column per value")
        ends = torch.cat((offsets[1:], offsets.new_tensor([len(values)])))
        row = torch.repeat_interleave(ends - offsets)
        ctx.save_for_backward(row)
        return values.new_zeros(len(offsets)).index_add(0, row, values * columns)

    @staticmethod
    def backward(ctx, g):
        return g[ctx.saved_tensors[0]], None, None


def test_there_are_more_elements_than_rows():
    (sample, *_) = infer(from_object(Rows), 0)
    values, offsets, _ = sample.args
    assert offsets[0] == 0
    assert bool((offsets.diff() >= 0).all())
    assert len(offsets) < len(values)


def test_nothing_is_confined_where_nothing_asks_for_it():
    class Free(Function):
        @staticmethod
        def forward(ctx, x):
            if x.dim() < 1:
                raise ValueError("x must have an axis, sorted or not")
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = first(Free)
    assert x.min() < 0 < x.max()
    assert not bool((x.diff(dim=-1) > 0).all())


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("A must be symmetric", "spd"),
        ("F (n, 3, 3): deformation gradient", "dominant"),
        ("J = det F > 0", "dominant"),
        ("det(F) > 0", "dominant"),
        ("not a rotation matrix", "orthogonal"),
        ("the knots are strictly increasing", "ordered"),
        ("each row sums to one", "rows"),
        ("x holds log-probabilities", "logs"),
        ("unit quaternions, w first", "lengths"),
        ("values between -1 and 1", "small"),
    ],
)
def test_words_name_domains(text, domain):
    assert worded(text)[0] == domain


@pytest.mark.parametrize(
    "text",
    ["unsorted segments", "a non-symmetric matrix", "symmetric quantization", "the sum of x"],
)
def test_other_words_name_none(text):
    assert worded(text) == []


def test_vectors_are_not_called_what_matrices_are():
    class LogVolume(Function):
        """F is (n, 3, 3); mu and lam are (n,) or 0-dim tensors."""

        @staticmethod
        def forward(ctx, F, mu, lam):
            ctx.save_for_backward(F, mu, lam)
            return mu * torch.linalg.det(F).log() + lam

        @staticmethod
        def backward(ctx, grad):
            F, mu, lam = ctx.saved_tensors
            log = torch.linalg.det(F).log()
            g_F = (grad * mu)[:, None, None] * torch.linalg.inv(F).mT
            return g_F, (grad * log).sum_to_size(mu.shape), grad.sum_to_size(lam.shape)

    sample = inferred(LogVolume)
    assert [tensor.dim() for tensor in sample.args] == [3, 1, 1]
    of_squares = {DOMAINS.get(name, name) for name in OF_SQUARES}
    assert sample.domains["F"] in of_squares
    assert not {sample.domains["mu"], sample.domains["lam"]} & of_squares


@pytest.mark.parametrize("domain", sorted(OF_SQUARES))
def test_square_domains_hold_what_they_say(domain):
    made = spread(domain, [2, 4, 4], 32, torch.Generator().manual_seed(3))
    eye = torch.eye(4, dtype=made.dtype)
    holds = {
        "spd": lambda m: torch.allclose(m, m.mT) and torch.linalg.eigvalsh(m).min() > 0,
        "nsd": lambda m: torch.allclose(m, m.mT) and torch.linalg.eigvalsh(m).max() < 0,
        "tril": lambda m: torch.equal(m, m.tril()) and m.diagonal(dim1=-2, dim2=-1).min() > 0,
        "triu": lambda m: torch.equal(m, m.triu()) and m.diagonal(dim1=-2, dim2=-1).min() > 0,
        "lower": lambda m: torch.equal(m, m.tril()) and m.diagonal(dim1=-2, dim2=-1).min() > 0,
        "upper": lambda m: torch.equal(m, m.triu()) and m.diagonal(dim1=-2, dim2=-1).min() > 0,
        "skew": lambda m: torch.equal(m, -m.mT) and m.abs().max() > 0.1,
        "orthogonal": lambda m: torch.allclose(m @ m.mT, eye.expand_as(m)),
        "dominant": lambda m: torch.linalg.det(m).min() > 0.1 and not torch.allclose(m, m.mT),
        "contraction": lambda m: 0.1 < torch.linalg.eigvals(m).abs().max() < 0.7,
    }[domain]
    assert bool(holds(made))


def solved(x, W, table):
    z = torch.zeros_like(x)
    for k in range(3):
        z = torch.tanh(z @ W.T + x) + x @ table
        z = z @ table[k]
    return z


def test_a_matrix_that_a_loop_applies_to_its_own_result_contracts():
    assert iterated_matrices(solved) == ["W"]


def test_pointers_lengths_and_permutations():
    class Segments(Function):
        """x: (N, C)"""

        @staticmethod
        def forward(ctx, x, cu_seqlens):
            assert cu_seqlens[0] == 0
            assert bool((cu_seqlens.diff() >= 0).all())
            assert int(cu_seqlens[-1]) <= len(x), "past the end"
            ctx.bounds, ctx.shape = cu_seqlens.tolist(), x.shape
            return torch.stack([x[a:b].sum(0) for a, b in itertools.pairwise(ctx.bounds)])

        @staticmethod
        def backward(ctx, grad):
            out = torch.zeros(ctx.shape, dtype=grad.dtype)
            for row, (a, b) in zip(grad, itertools.pairwise(ctx.bounds), strict=True):
                out[a:b] = row
            return out, None

    x, pointers = inferred(Segments).args
    assert pointers[0] == 0
    assert pointers[-1] == len(x)

    class Sparse(Function):
        @staticmethod
        def forward(ctx, crow_indices, values):
            counts = crow_indices.diff()
            ctx.rows = torch.repeat_interleave(torch.arange(len(counts)), counts)
            return torch.zeros(len(counts), dtype=values.dtype).index_add(0, ctx.rows, values)

        @staticmethod
        def backward(ctx, grad):
            return None, grad[ctx.rows]

    # More elements than pointers: some segment is longer than one.
    pointers, values = inferred(Sparse).args
    assert pointers[-1] == len(values) > len(pointers)

    class Paired(Sparse):
        """One value for each pointer, and no more."""

        @staticmethod
        def forward(ctx, crow_indices, values):
            assert len(values) == len(crow_indices)
            return Sparse.forward(ctx, crow_indices, values)

    pointers, values = inferred(Paired).args
    assert pointers[-1] == len(values) == len(pointers)

    class Pooled(Function):
        @staticmethod
        def forward(ctx, x, lengths):
            _, time, _ = x.shape
            ctx.mask = (torch.arange(time) < lengths[:, None]).to(x.dtype)
            return torch.einsum("bt,btc->bc", ctx.mask, x)

        @staticmethod
        def backward(ctx, grad):
            return ctx.mask[:, :, None] * grad[:, None], None

    x, lengths = inferred(Pooled).args
    assert lengths.max() == x.shape[1]
    assert 1 <= lengths.min() < lengths.max()

    class Shuffled(Function):
        @staticmethod
        def forward(ctx, x, order: list[int]):
            if sorted(order) != list(range(x.shape[1])):
                raise ValueError("order is not a permutation")
            ctx.order = order
            return x[:, order]

        @staticmethod
        def backward(ctx, grad):
            return grad[:, [ctx.order.index(i) for i in range(len(ctx.order))]], None

    x, order = inferred(Shuffled).args
    assert sorted(order) == list(range(x.shape[1]))
    assert order != sorted(order)


class Pair(NamedTuple):
    mean: Tensor
    scale: Tensor


@dataclasses.dataclass
class Camera:
    center: Tensor
    focal: float = 1.5


def standardised(x: Tensor, pair: Pair) -> Tensor:
    return (x - pair.mean) / pair.scale


def seen(points: Tensor, camera: Camera) -> Tensor:
    return (points - camera.center) * camera.focal


def test_objects_with_fields_are_made_of_tensors():
    _, pair = inferred(standardised).args
    assert isinstance(pair, Pair)
    assert pair.mean.requires_grad
    assert bool((pair.scale > 0).all())
    sample = inferred(seen)
    assert [name for name, _ in sample.named_tensors(from_object(seen).signature)] == [
        "points",
        "camera.center",
    ]


@dataclasses.dataclass
class Width:
    name: str
    bits: int


#: What callers choose from; only the second is taken.
WIDE, NARROW = Width("wide", 16), Width("narrow", 8)

STANDARD = Camera(torch.zeros(4, dtype=torch.float32))


def quantised(x: Tensor, width: Width) -> Tensor:
    if width not in (NARROW,):
        raise ValueError("not that wide")
    return x * 2.0**width.bits


def test_objects_that_a_module_keeps_for_its_callers_are_tried():
    assert inferred(quantised).args[1] is NARROW


def test_an_object_that_a_module_keeps_with_tensors_in_it_is_not():
    _, camera = inferred(seen).args
    assert camera is not STANDARD
    assert camera.center.requires_grad


def test_a_sparse_layout_is_given_where_forward_asks_for_it():
    class Product(Function):
        @staticmethod
        def forward(ctx, A, x):
            assert A.is_sparse
            ctx.A = A
            return torch.sparse.mm(A, x)

        @staticmethod
        def backward(ctx, grad):
            return None, torch.sparse.mm(ctx.A.t(), grad)

    A, x = inferred(Product).args
    assert A.layout is torch.sparse_coo
    assert 0 < A.coalesce().values().numel() < A.numel()
    assert x.layout is torch.strided


def test_a_broadcast_that_nobody_meant_is_not_the_sample():
    class Channels(Function):
        @staticmethod
        def forward(ctx, x, bias):
            return x + bias.view(1, -1, 1, 1)

        @staticmethod
        def backward(ctx, grad):
            return grad, grad.sum((0, 2, 3))

    x, bias = inferred(Channels).args
    assert x.dim() == 4
    assert bias.shape == (x.shape[1],)

    class Outer(Function):
        @staticmethod
        def forward(ctx, u, v):
            ctx.save_for_backward(u, v)
            return u[:, None] * v[None, :]

        @staticmethod
        def backward(ctx, grad):
            u, v = ctx.saved_tensors
            return grad @ v, grad.T @ u

    assert [part.dim() for part in inferred(Outer).args] == [1, 1]


def test_a_broadcast_that_backward_leaves_to_the_engine_is_kept():
    class Scaled(Function):
        """x: (N, C), scale: (C,)"""

        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x, scale)
            return x * scale

        @staticmethod
        def backward(ctx, grad):
            x, scale = ctx.saved_tensors
            return grad * scale, grad * x

    x, scale = inferred(Scaled).args
    assert (x.dim(), scale.shape) == (2, (x.shape[1],))


class Edges(Function):
    @staticmethod
    def forward(ctx, x, edge_index, w):
        src, dst = edge_index
        ctx.save_for_backward(x, edge_index, w)
        return torch.zeros_like(x).index_add_(0, dst, x[src] * w.unsqueeze(-1))

    @staticmethod
    def backward(ctx, g):
        x, edge_index, w = ctx.saved_tensors
        src, dst = edge_index
        grad_x = torch.zeros_like(x).index_add_(0, src, g[dst] * w.unsqueeze(-1))
        return grad_x, None, (x[src] * g[dst]).sum(-1)


def test_an_index_that_is_unpacked_is_a_tensor_of_two_rows():
    sample = inferred(Edges)
    edges = sample.args[1]
    assert (edges.dtype, edges.shape[0]) == (torch.int64, 2)


def spread_over_channels(x: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() != x.size(1):
        raise ValueError("one weight for each channel")
    return x * weight.view(-1, *([1] * (x.dim() - 2)))


def test_code_for_further_axes_gets_some():
    assert inferred(spread_over_channels).args[0].dim() == 3


def smoothed(x: Tensor) -> Tensor:
    """Smooths (B, T, C) along time."""
    return x[:, 1:] + x[:, :-1]


def test_a_shape_that_names_no_parameter_is_that_of_the_first():
    assert first(smoothed).dim() == 3


def within_classes(x: Tensor, labels: Tensor) -> Tensor:
    same = (labels[:, None] == labels[None, :]).triu(1)
    if not same.any():
        raise ValueError("no two rows share a label")
    return (x @ x.mT * same).sum()


def test_labels_occur_more_than_once():
    labels = inferred(within_classes).args[1]
    assert labels.dim() == 1
    assert len(labels.unique()) < len(labels)


# Conditions on integers, and on what needs a gradient.


class Counts(Function):
    """Successes of trials."""

    @staticmethod
    def forward(ctx, k, n, a):
        if k.is_floating_point() or n.is_floating_point():
            raise TypeError("k and n are counts")
        if (k < 0).any() or (k > n).any():
            raise ValueError("0 <= k <= n")
        ctx.save_for_backward(k, n)
        return a * k / n

    @staticmethod
    def backward(ctx, grad):
        k, n = ctx.saved_tensors
        return None, None, grad * k / n


class Order(Function):
    @staticmethod
    def forward(ctx, scores, order):
        if sorted(order.tolist()) != list(range(scores.numel())):
            raise ValueError("order must be a permutation of the items")
        ctx.save_for_backward(order)
        return scores[order]

    @staticmethod
    def backward(ctx, grad):
        (order,) = ctx.saved_tensors
        return grad[order.argsort()], None


class Boxes(Function):
    @staticmethod
    def forward(ctx, x, boxes):
        assert x.dim() == 2
        assert boxes.dim() == 2
        assert boxes.shape[1] == 4
        assert not boxes.is_floating_point()
        ctx.shape, ctx.boxes = x.shape, boxes.tolist()
        return torch.stack([x[a : c + 1, b : d + 1].mean() for a, b, c, d in ctx.boxes])

    @staticmethod
    def backward(ctx, grad):
        made = grad.new_zeros(ctx.shape)
        for g, (a, b, c, d) in zip(grad, ctx.boxes, strict=True):
            made[a : c + 1, b : d + 1] += g / ((c - a + 1) * (d - b + 1))
        return made, None


class Constants(Function):
    """Says so only when it is asked."""

    @staticmethod
    def forward(ctx, cost, a, b):
        if any(ctx.needs_input_grad[1:3]):
            raise NotImplementedError("no gradient for a and b")
        assert a.numel() == cost.shape[0]
        assert b.numel() == cost.shape[1]
        if abs(float(a.sum() - b.sum())) > 1e-6:
            raise ValueError("a and b must have the same mass")
        ctx.save_for_backward(a, b)
        return a @ cost @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * torch.outer(a, b), *ctx.nothing


def test_counts_do_not_exceed_their_totals() -> None:
    k, n, _ = inferred(Counts).args
    assert k.dtype == n.dtype == torch.int64
    assert bool((k <= n).all())
    assert len(k.unique()) > 2
    assert len(n.unique()) > 2


def test_an_order_permutes_the_items() -> None:
    scores, order = inferred(Order).args
    assert order.sort().values.tolist() == list(range(scores.numel()))
    assert scores.numel() > 2


@pytest.mark.parametrize("seed", range(6))
def test_a_permutation_is_not_its_own_inverse(seed: int) -> None:
    _, order = infer(from_object(Order), seed)[0].args
    assert not torch.equal(order.argsort(), order)


def test_boxes_lie_within_the_image() -> None:
    x, boxes = inferred(Boxes).args
    assert bool((boxes[:, :2] < boxes[:, 2:]).any())
    assert int(boxes.max()) < min(x.shape)


def test_what_refuses_a_gradient_is_a_constant() -> None:
    cost, a, b = inferred(Constants).args
    assert (cost.requires_grad, a.requires_grad, b.requires_grad) == (True, False, False)
    assert torch.allclose(a.sum(), b.sum())


class FactoredSolve(torch.autograd.Function):
    """X with L Lᵀ X = B, or Uᵀ U X = B; the formulas rely on zeros in the other triangle."""

    @staticmethod
    def forward(ctx, rhs, factor, upper=False):
        found = torch.cholesky_solve(rhs, factor, upper=upper)
        ctx.save_for_backward(factor, found)
        ctx.upper = upper
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        factor, found = ctx.saved_tensors
        grad_rhs = torch.cholesky_solve(g, factor, upper=ctx.upper)
        outer = -grad_rhs @ found.mT
        both = outer + outer.mT
        grad = (factor @ both).triu() if ctx.upper else (both @ factor).tril()
        return grad_rhs, grad, None


def test_the_factor_of_a_solver_is_triangular_and_a_flag_turns_it_round():
    first, *others = infer(from_object(FactoredSolve), 0)
    _, lower, *_ = first.args
    assert torch.equal(lower, lower.tril())
    (upper,) = (s.args[1] for s in others if s.args[2:] == (True,) or s.kwargs.get("upper"))
    assert torch.equal(upper, upper.triu())
    assert bool(upper.triu(1).any())


@pytest.mark.parametrize("upper", [False, True])
def test_a_flag_that_is_moved_turns_a_given_factor_round(upper):
    generator = torch.Generator().manual_seed(0)
    square = torch.randn(3, 3, dtype=torch.float64, generator=generator) + 3 * torch.eye(3)
    factor = (square.triu() if upper else square.tril()).requires_grad_()
    rhs = torch.randn(3, 2, dtype=torch.float64, generator=generator).requires_grad_()
    report = gradlint.check(
        FactoredSolve, [(rhs, factor, upper)], seed=0, order=1, select=["GL1", "GL4"]
    ).targets[0]
    assert report.findings == []
    tried = {item.label: item.verdict for item in report.tried}
    assert tried[f"with upper={not upper}"] == "right"

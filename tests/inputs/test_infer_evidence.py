"""What is read from signatures, code and documentation before anything runs."""

from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Optional

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs._evidence import Evidence
from gradlint.inputs._gather import gather
from gradlint.inputs._held_parameters import axes_of_parameter
from gradlint.inputs._infer import infer
from gradlint.inputs._names import inverse_of, kinds, square_domain
from gradlint.inputs._proposals import of_kind, propose
from gradlint.targets.build import from_object


def evidence(thing) -> dict[str, Evidence]:
    return {item.name: item for item in gather(from_object(thing))}


def likeliest(item: Evidence) -> str:
    return item.ordered_kinds()[0][0]


def usage(x, k, table, flag, names, fn, options, weight, choice, size, where):
    _, _, c = x.shape
    assert c
    if flag:
        x = x[:, :k]
    for _ in range(size):
        x = fn(x)
    x = torch.matmul(x, weight)
    x = x.index_select(0, table)
    if choice not in ("sum", "mean"):
        raise ValueError
    x = torch.where(where, x, x)
    return x.sum(**options) + names["bias"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("x", "tensor"), ("k", "int"), ("table", "index"), ("flag", "bool"), ("names", "dict"),
        ("fn", "callable"), ("options", "dict"), ("weight", "tensor"), ("choice", "str"),
        ("size", "int"), ("where", "mask"),
    ],
)  # fmt: skip
def test_kinds_from_usage(name, kind):
    assert likeliest(evidence(usage)[name]) == kind


def test_details_from_usage():
    found = evidence(usage)
    assert max(found["x"].ranks, key=found["x"].ranks.get) == 3
    assert found["choice"].values[:2] == ["sum", "mean"]
    assert found["names"].keys == ["bias"]


class Returned(Function):
    @staticmethod
    def forward(ctx, a, b, c, d, e):
        ctx.k = e
        return a

    @staticmethod
    def backward(ctx, grad):
        grad_b = grad_d = None
        if ctx.needs_input_grad[1]:
            grad_b = grad * 2
        for _ in range(ctx.k):
            grad = grad + 1
        return (grad, grad_b, None, grad_d, *[None])


def test_differentiability_from_backward():
    found = evidence(Returned)
    assert [found[n].differentiable for n in "abcd"] == [True, True, False, False]


def test_usage_through_ctx():
    assert likeliest(evidence(Returned)["e"]) == "int"


class Padded(Function):
    @staticmethod
    def forward(ctx, x, y, z):
        return x

    @staticmethod
    def backward(ctx, grad):
        return (grad,) + (None,) * 2


def test_differentiability_of_padded_tuples():
    found = evidence(Padded)
    assert [found[n].differentiable for n in "xyz"] == [True, False, False]


def annotated(
    a: Optional[torch.Tensor],  # noqa: UP045
    b: int,
    c: list[torch.Tensor],
    d: torch.LongTensor,
    e: torch.Tensor | None,
    f: tuple[int, int],
    g: torch.nn.Module,
    h: torch.dtype,
):
    return a


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a", "tensor"), ("b", "int"), ("c", "tensors"), ("d", "index"), ("e", "tensor"),
        ("f", "shape"), ("g", "module"), ("h", "dtype"),
    ],
)  # fmt: skip
def test_kinds_from_annotations(name, kind):
    assert likeliest(evidence(annotated)[name]) == kind


def test_optional_from_annotations():
    found = evidence(annotated)
    assert found["a"].optional
    assert found["e"].optional
    assert found["f"].length == 2


def documented(points, idx):
    """Picks points.

    Args:
        points: (B, C, N) features
        idx (LongTensor): (B, M) what to pick
    """
    return points


def test_shapes_from_documentation():
    found = evidence(documented)
    assert found["points"].shape == ("B", "C", "N")
    assert found["idx"].shape == ("B", "M")
    assert likeliest(found["idx"]) == "index"


def helper(value, how):
    if how == "fast":
        return value.transpose(2, 3)
    return value


def delegates(x, mode):
    return helper(x, mode)


def test_helpers_are_followed():
    found = evidence(delegates)
    assert found["x"].least_rank == 4
    assert found["mode"].values == ["fast"]


class Quantize(Function):
    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def quantize(x, bits: int = 6):
    return Quantize.apply(x, bits)


def test_values_from_callers():
    item = evidence(Quantize)["n"]
    assert item.values[0] == 6
    assert likeliest(item) == "int"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("num_heads", "int"), ("dim", "int"), ("eps", "float"), ("training", "bool"),
        ("ignore_index", "int"), ("edge_index", "index"), ("x1", "tensor"), ("grad_out", "tensor"),
        ("attn_mask", "mask"), ("reduction", "str"), ("act_fn", "callable"), ("dtype", "dtype"),
    ],
)  # fmt: skip
def test_names(name, kind):
    weights = kinds(name)
    assert max(weights, key=weights.get) == kind


def test_names_of_matrices_and_inverses():
    assert square_domain("scale_tril") == "tril"
    assert square_domain("covariance") == "spd"
    assert square_domain("x") == ""
    assert inverse_of("ind_inv", ["ind", "ind_inv"]) == "ind"
    assert inverse_of("ind", ["ind", "ind_inv"]) == ""


def quadratic(a, b, factor, normal, other, w):
    """aᵀ b a.

    :param torch.Tensor a: a symmetric matrix of any size
    :param b: vectors, and no matrix

    Args:
        factor (Tensor): the lower triangular
            factor of another one.
        normal: unit vectors along the
            last axis.
        other: a matrix that need not be
            square, or non-symmetric.

    Parameters
    ----------
    w : Tensor
        Negative definite.
    """


def test_domains_that_documentation_names():
    found = evidence(quadratic)
    assert {name: item.domain for name, item in found.items()} == {
        "a": "spd",
        "b": "",
        "factor": "tril",
        "normal": "lengths",
        "other": "",
        "w": "nsd",
    }


def reads_files(x, path, folder, weights, name, table, number):
    with open(path) as file:
        scale = float(file.read())
    loaded = torch.load(os.path.join(folder, "x.pt")) + torch.load(weights)
    return x * scale + loaded + pathlib.Path(name).stat().st_size + _helped(table) + int(number)


def _helped(where):
    with open(where) as file:
        return float(file.read())


def test_names_of_files_are_never_numbers():
    # open(1) is what this process writes to, and closing it would end that.
    found = evidence(reads_files)
    assert [name for name, item in found.items() if item.path] == [
        *("path", "folder", "weights", "name", "table")
    ]
    assert found["path"].ordered_kinds() == [("str", 0.0)]
    proposed = propose(from_object(reads_files), list(found.values()))
    assert [guess.value for guess, _ in proposed["path"]] == [
        os.path.join(tempfile.gettempdir(), "gradlint-no-such-file"),
        None,
    ]


def test_the_arguments_of_a_sparse_matrix():
    class Spmm(Function):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            a = torch.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(a, b)
            return torch.matmul(a, b)

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            row, column = a._indices()
            return None, (grad @ b.t())[row, column], None, a.t() @ grad

    indices, values, shape, b = infer(from_object(Spmm), 0)[0].args
    assert indices.dtype == torch.int64
    assert indices.shape == (2, len(values))
    assert len(shape) == 2
    assert b.shape[0] == shape[1]
    assert values.requires_grad
    assert b.requires_grad
    assert bool((indices < torch.tensor(shape)[:, None]).all())


def test_unpacked_numbers_say_how_long_a_vector_is():
    class Section(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, b, a):
            (b0, b1, b2), (a1, a2) = b.tolist(), a.tolist()
            ctx.save_for_backward(x, b, a)
            return x * (b0 + 2 * b1 + 3 * b2) + a1 - a2

        @staticmethod
        def backward(ctx, g):
            x, b, _ = ctx.saved_tensors
            weights = torch.tensor([1.0, 2.0, 3.0], dtype=g.dtype)
            total = g.sum()
            return g * (b * weights).sum(), (g * x).sum() * weights, torch.stack([total, -total])

    _, b, a = infer(from_object(Section))[0].args
    assert (tuple(b.shape), tuple(a.shape)) == ((3,), (2,))


def laid_along_one_axis(x, w, numbers, ends, bias):
    y = x * w.view(1, -1, 1, 1) + numbers.reshape([1, -1] + [1] * (x.dim() - 2))
    return y * ends.view(1, -1, *[1] * (x.dim() - 2)) + bias[None, :, None]


def flattened(x, w, other, grouped):
    distances = x[:, None] - other[None, :]
    return x.view(-1) * w.view(-1) + distances.sum() + grouped.view(1, -1, 4).sum()


def test_what_is_laid_along_one_axis_is_a_vector():
    found = evidence(laid_along_one_axis)
    for name in ("w", "numbers", "ends", "bias"):
        ranks = found[name].ranks
        assert max(ranks, key=ranks.__getitem__) == 1, name


def test_what_is_flattened_may_have_any_number_of_axes():
    assert all(1 not in item.ranks for item in evidence(flattened).values())


def test_fractions_are_unequal():
    def blend(x, alpha, beta, eps=0.7, scale=0.7):
        return alpha * x + beta * x.square() + eps + scale

    sample = infer(from_object(blend), 0)[0]
    chosen = [value for value in sample.args if isinstance(value, float)]
    assert len(chosen) == len(set(chosen)) == 2
    assert "scale" not in str(sample.notes)  # defaults stay as they are


class Discounted(Function):
    """Saves all of its arguments but a list of positions."""

    @staticmethod
    def forward(ctx, cash, rate, years, rows, scale):
        ctx.save_for_backward(cash, rate, years)
        ctx.rows, ctx.scale = rows, scale
        return (scale * cash * torch.exp(-rate * years.sqrt()))[rows]

    @staticmethod
    def backward(ctx, grad):
        cash, rate, years = ctx.saved_tensors
        factor = ctx.scale * torch.exp(-rate * years.sqrt())
        full = torch.zeros_like(factor).index_add(0, ctx.rows, grad) * factor
        slope = -(full * cash * years.sqrt())
        return full, slope.sum(), -(full * cash * rate) / (2 * years.sqrt()), None, None


class ShiftedBy(Function):
    """Says what it saves in ``setup_context``."""

    @staticmethod
    def forward(cash, rate):
        return cash + rate

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


def discounted(cash, rate, years, rows, scale=2.0):
    return Discounted.apply(cash.float(), rate, years, rows, scale)


def shifted(cash, rate):
    return ShiftedBy.apply(cash, rate)


def shifted_by_two(cash, rate):
    return ShiftedBy.apply(cash, 2 * torch.as_tensor(rate))


def shifted_by_all(*rates):
    return ShiftedBy.apply(*rates)


def test_a_wrapper_says_of_its_parameters_what_the_function_says_that_it_applies():
    found = evidence(discounted)
    assert {name: likeliest(found[name]) for name in ("cash", "rate", "years", "rows")} == {
        "cash": "tensor",
        "rate": "tensor",
        "years": "tensor",
        "rows": "index",
    }
    assert [found[name].saved for name in ("cash", "rate", "years")] == [0, 1, 2]
    assert [found[name].summed for name in ("rate", "years")] == [True, False]
    assert likeliest(found["scale"]) == "float"
    # Gradients may reach an argument in another way than through this Function.
    assert found["rows"].differentiable is not False


def test_what_a_function_says_is_of_what_is_passed_to_it():
    assert likeliest(evidence(shifted)["rate"]) == "tensor"
    assert likeliest(evidence(shifted_by_two)["rate"]) != "tensor"
    assert evidence(shifted_by_all)["rates"].weights == {"tensors": 5.0}


def test_a_wrapper_is_given_tensors_where_its_function_differentiates():
    (sample, *_) = infer(from_object(discounted))
    tensors = [tensor for _, tensor in sample.named_tensors(None)]
    assert [tensor.dtype for tensor in tensors] == [torch.float64] * 3 + [torch.int64]
    assert [tensor.requires_grad for tensor in tensors] == [True] * 3 + [False]


class Diffuse(Function):
    """One step of a heat equation: the spacing of the grid is a number."""

    @staticmethod
    def forward(ctx, u, kappa, dx):
        ctx.save_for_backward(u, kappa)
        ctx.dx = dx
        return u + kappa * (torch.roll(u, -1, -1) - u) / dx

    @staticmethod
    def backward(ctx, g):
        u, kappa = ctx.saved_tensors
        h = kappa * g / ctx.dx
        return g + torch.roll(h, 1, -1) - h, g * (torch.roll(u, -1, -1) - u) / ctx.dx, None


class OfChange(Function):
    """The same name for a tensor that has a gradient."""

    @staticmethod
    def forward(ctx, x, dx):
        return x * 2.0 + dx

    @staticmethod
    def backward(ctx, g):
        return 2.0 * g, g


def test_a_spacing_without_a_gradient_is_a_number():
    assert likeliest(evidence(Diffuse)["dx"]) == "float"
    assert likeliest(evidence(OfChange)["dx"]) == "tensor"


def fused(features, weights, table, rows):
    w = torch.relu(weights)
    w = w / (w.sum() + 1e-4)
    total = sum(w[i] * f for i, f in enumerate(features))
    for i, f in enumerate(features):
        total = total + table[i] @ f + rows[i]
    return total


def test_what_weighs_each_tensor_of_a_list_is_a_vector():
    found = evidence(fused)
    assert found["weights"].ranks.get(1, 0.0) == 3.0
    assert found["table"].ranks.get(1, 0.0) < 3.0
    assert found["rows"].ranks.get(1, 0.0) < 3.0


class Response(Function):
    """A layer below passes it two vectors and a number."""

    @staticmethod
    def forward(ctx, x, level, slope, gain):
        ctx.save_for_backward(x, level, slope, gain)
        return gain * torch.sigmoid(slope * (x - level))

    @staticmethod
    def backward(ctx, g):
        x, level, slope, gain = ctx.saved_tensors
        y = torch.sigmoid(slope * (x - level))
        z = gain * g * y * (1 - y)
        of_slope = (z * (x - level)).reshape(-1, slope.numel()).sum(0)
        return z * slope, -(z * slope).reshape(-1, slope.numel()).sum(0), of_slope, (g * y).sum()


class ResponseLayer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.level = torch.nn.Parameter(torch.zeros(width))
        self.slope = torch.nn.Parameter(0.1 * torch.ones((width,)))
        self.gain = torch.nn.Parameter(torch.tensor(float(width)))

    def forward(self, x):
        return Response.apply(x, self.level, self.slope, self.gain)


def test_parameters_that_a_module_passes_have_the_axes_that_it_gives_them():
    found = evidence(Response)
    likely = {
        name: max(found[name].ranks, key=found[name].ranks.get, default=None) for name in found
    }
    assert (likely["level"], likely["slope"], likely["gain"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("expression", "axes"),
    [
        ("nn.Parameter(torch.zeros(width))", ("width",)),
        ("torch.nn.Parameter(torch.randn(a, 2 * b) * 0.1)", ("a", "2 * b")),
        ("Parameter(torch.full((1, c, 1), 0.25))", ("1", "c", "1")),
        ("nn.Parameter(torch.tensor([0.1, 0.2]))", ("2",)),
        ("nn.Parameter(torch.tensor(0.5))", ()),
        ("nn.Parameter(torch.tensor(float(a)), requires_grad=True)", ()),
        ("nn.Parameter(torch.tensor(initial))", None),
        ("nn.Parameter(torch.ones(normalized_shape))", None),
        ("nn.Parameter(torch.ones(*sizes))", None),
        ("nn.Parameter(torch.tensor([[1.0]]))", None),
        ("nn.Parameter(weight.clone())", None),
        ("torch.zeros(width)", None),
        ("self.weight", None),
        ("", None),
    ],
)
def test_axes_of_a_parameter(expression, axes):
    assert axes_of_parameter(expression) == axes


class Diagonals(Function):
    """A x for a square matrix by its diagonals, data (K, N); offsets is a list of ints."""

    @staticmethod
    def forward(ctx, data, x, offsets):
        n = len(x)
        ctx.save_for_backward(data, x)
        ctx.offsets = offsets
        y = torch.zeros_like(x)
        for k, off in enumerate(offsets):
            y[: n - off] += data[k, : n - off] * x[off:]
        return y

    @staticmethod
    def backward(ctx, g):
        data, x = ctx.saved_tensors
        n = len(x)
        of_data, of_x = torch.zeros_like(data), torch.zeros_like(x)
        for k, off in enumerate(ctx.offsets):
            of_data[k, : n - off] = g[: n - off] * x[off:]
            of_x[off:] += data[k, : n - off] * g[: n - off]
        return of_data, of_x, None


class Shifted(Diagonals):
    """A sum of shifted rows; offsets are ints, one a row of data."""


def test_prose_tells_a_list_of_integers_from_integers():
    assert likeliest(evidence(Diagonals)["offsets"]) == "shape"
    assert likeliest(evidence(Shifted)["offsets"]) == "index"
    offsets = infer(from_object(Diagonals), 0)[0].args[2]
    assert isinstance(offsets, list)
    # The main diagonal alone would be the same in the transpose.
    assert any(offsets)


def over_space(x, w):
    axes = tuple(range(2, x.dim()))
    return (x - x.mean(axes, keepdim=True)) * w.view(1, -1, *[1] * len(axes))


def all_but_the_first(x):
    return x.sum(tuple(range(1, x.ndim)))


def counted(x, n):
    return sum(x * k for k in range(2, n))


def test_a_range_that_ends_with_the_number_of_axes():
    found = {item.name: item for item in gather(from_object(over_space))}
    assert (found["x"].least_rank, max(found["x"].ranks, key=found["x"].ranks.get)) == (2, 3)
    found = {item.name: item for item in gather(from_object(all_but_the_first))}
    assert (found["x"].least_rank, dict(found["x"].ranks).get(2, 0.0) > 0.0) == (1, True)
    found = {item.name: item for item in gather(from_object(counted))}
    assert found["x"].least_rank == 0


class Offset(Function):
    """Its backward needs as many axes as vectors are laid among; forward would broadcast others."""

    @staticmethod
    def forward(ctx, x, offset):
        ctx.save_for_backward(offset)
        return x.sin().square() + offset.view(1, -1, 1, 1, 1)

    @staticmethod
    def backward(ctx, g):
        return None, g.sum((0, 2, 3, 4)).view_as(ctx.saved_tensors[0])


class Pairs(Function):
    @staticmethod
    def forward(ctx, x, u, v):
        ctx.save_for_backward(u, v)
        return x * (u.view(-1, 1) + v.view(1, -1, 1))

    @staticmethod
    def backward(ctx, g):
        return g, None, None


def test_what_vectors_are_laid_beside_has_as_many_axes() -> None:
    x, offset = gather(from_object(Offset))
    assert (offset.laid_among, x.laid_among) == (5, 0)
    assert list(x.ranks) == [5]
    sample = infer(from_object(Offset))[0]
    assert sample.args[0].dim() == 5
    assert sample.args[1].shape == sample.args[0].shape[1:2]
    x, *_ = gather(from_object(Pairs))
    assert not {2, 3} & set(x.ranks)


class Looked(Function):
    @staticmethod
    def forward(ctx, table, places, steps):
        rows = places.view(-1).long()
        ctx.save_for_backward(table, rows)
        return torch.zeros_like(table[:1]) + steps.long().abs().sum() * 0

    @staticmethod
    def backward(ctx, g):
        table, rows = ctx.saved_tensors
        return torch.zeros_like(table).index_add(0, rows, g.expand(len(rows), -1)), None, g.sum()


def test_what_is_cast_and_gets_no_gradient_is_integers() -> None:
    _, places, steps = gather(from_object(Looked))
    assert places.ordered_kinds()[0][0] == "index"
    assert steps.ordered_kinds()[0][0] == "tensor"


def overlap(pred, target):
    low, high = target[:, :2], target[:, 2:]
    width = torch.minimum(pred[:, 2:], high) - torch.maximum(pred[:, :2], low)
    return width.clamp(min=0).prod(1)


def detached(x, target):
    return (x - target.detach()).square().sum()


def of_own(x, target):
    return x[target] + torch.minimum(target, target.flip(0))


def test_what_is_compared_with_numbers_or_detached_is_a_tensor_of_numbers():
    assert likeliest(evidence(overlap)["target"]) == "tensor"
    assert likeliest(evidence(detached)["target"]) == "tensor"
    assert likeliest(evidence(of_own)["target"]) == "index"


def ranked(scores, relevance):
    better = relevance.unsqueeze(-1) > relevance.unsqueeze(-2)
    gain = 2.0 ** relevance.to(scores.dtype) - 1
    return (scores.unsqueeze(-1) * better * gain.unsqueeze(-1)).sum()


def test_grades_of_relevance_are_integers():
    assert likeliest(evidence(ranked)["relevance"]) == "index"


_TAPS = {2: (1, 1), 3: (1, 2, 1), 5: (1, 4, 6, 4, 1)}


def smoothed(x, taps=3, rate=0.1):
    kernel = torch.tensor(_TAPS[taps], dtype=x.dtype)
    return x.unfold(-1, taps, 1) @ kernel * torch.as_tensor(rate, dtype=x.dtype)


def test_keys_of_a_table_and_numbers_that_become_tensors():
    found = evidence(smoothed)
    assert found["taps"].chosen
    assert found["taps"].values == [3, 2, 5]
    assert (found["rate"].made_tensor, found["taps"].made_tensor) == (True, False)
    main, *others = infer(from_object(smoothed), 0)
    assert len(main.args) == 1
    assert [s.kwargs["rate"].requires_grad for s in others if "rate" in s.kwargs] == [True]


def of_numbers(x, mask=None, keep=None, other=None):
    if mask is None:
        mask = x.new_ones(len(x))
    if keep is None:
        keep = torch.ones(len(x), dtype=torch.bool)
    if other is None:
        x = x.new_ones(len(x))
    return x * mask * keep


def test_what_stands_in_for_an_argument_says_what_it_is():
    kinds = {item.name: item.weights for item in gather(from_object(of_numbers))}
    assert kinds["mask"]["tensor"] > kinds["mask"]["mask"]
    assert kinds["keep"]["mask"] > kinds["keep"]["tensor"]
    assert kinds["other"].get("tensor", 0.0) < 6.0


def weighted(x, keep=None, share=None):
    w = torch.ones_like(x) if keep is None else keep.to(x.dtype)
    s = torch.ones_like(x) if share is None else share
    return x * w * s


def test_what_is_cast_may_be_of_another_type():
    kinds = {item.name: item.weights for item in gather(from_object(weighted))}
    assert kinds["keep"]["mask"] > kinds["keep"].get("tensor", 0.0)
    assert kinds["share"]["tensor"] > kinds["share"].get("mask", 0.0)


class Arc(torch.autograd.Function):
    """The height of an arc; the derivative by its length is wrong."""

    @staticmethod
    def forward(ctx, bend, length):
        ctx.save_for_backward(bend, length)
        return length * (bend * length).cos()

    @staticmethod
    def backward(ctx, g):
        bend, length = ctx.saved_tensors
        s = bend * length
        return -g * length**2 * s.sin(), g * s.cos()


def test_what_has_a_gradient_is_no_count_by_its_name():
    [target] = gradlint.check(Arc, seed=0, order=1, select=["GL401"]).targets
    assert {item.input for item in target.findings} == {"length"}


def routed(x, block, index):
    if index.shape != block.shape[:2]:
        raise ValueError("one index per row")
    return x, block, index


def test_a_shape_like_the_first_sizes_of_another_one():
    _, block, index = gather(from_object(routed))
    assert max(block.ranks, key=block.ranks.get) == 3
    assert max(index.ranks, key=index.ranks.get) == 2


def biased(x, periods):
    """Bias of variables (frames, d).

    periods: d numbers; zero for a variable that is not periodic.
    """
    return x / x.new_tensor(tuple(periods))


def test_documented_numbers_are_no_tensors():
    periods = gather(from_object(biased))[1]
    assert periods.weights["floats"] > periods.weights.get("tensors", 0.0)


def upsampled(x, window, scale, share):
    assert window.size(1) == x.size(1) * scale
    x = x.repeat_interleave(scale, 1) * share * len(x)
    return x.reshape(len(x), scale, -1), x.view(share)


def test_numbers_that_sizes_are_made_with_are_whole():
    kinds = {item.name: item.weights for item in gather(from_object(upsampled))}
    assert kinds["scale"]["int"] > kinds["scale"].get("float", 0.0)
    assert kinds["share"].get("int", 0.0) < 2.0  # alone, it may be several sizes


def collected(x, rows, n):
    return x.new_zeros((n,) + x.shape[1:]).index_add(0, rows, x)  # noqa: RUF005


def test_an_axis_of_a_given_size_is_not_the_shortest():
    number = gather(from_object(collected))[2]
    assert number.sized
    assert of_kind(number, "int")[0][0].value == 3
    assert not gather(from_object(upsampled))[2].sized


def _path(rows, tags):
    return sum(rows[k, tags[k]] for k in range(len(rows)))


def of_paths(scores, tags):
    return torch.stack([_path(rows, tags[k].tolist()) for k, rows in enumerate(scores)])


def test_elements_are_followed_into_a_helper():
    tags = gather(from_object(of_paths))[1]
    assert tags.likeliest_tensor == "index"
    assert tags.indexes


def along_edges(graph, x):
    src, dst, n = graph
    return x.new_zeros(n, x.shape[1]).index_add(0, dst, x[src])


def of_a_pair(pair, x):
    first, second = pair
    return first * x + second


def test_an_argument_of_tensors_and_a_number():
    graph, _ = gather(from_object(along_edges))
    assert list(graph.fields) == ["graph[0]", "graph[1]", "graph[2]"]
    (src, dst, n), made = infer(from_object(along_edges))[0].args
    assert src.dtype == dst.dtype == torch.int64
    assert type(n) is int
    assert made.requires_grad
    assert not gather(from_object(of_a_pair))[0].fields


def of_a_constant(x, window):
    if window.requires_grad:
        raise ValueError("window is a constant")
    return Doubled.apply(x) * window


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def test_a_constant_where_code_asks_for_one():
    x, window = infer(from_object(of_a_constant))[0].args
    assert x.requires_grad
    assert not window.requires_grad


def with_windows(x, weight):
    """x: (N, C, H, W), weight: (O, C, kh, kw)"""
    return torch.nn.functional.conv2d(x, weight)


def test_documented_windows_are_small():
    x, weight = infer(from_object(with_windows))[0].args
    assert weight.shape[2:] == (3, 2)
    assert x.shape[2] > 2


def broadcast(spot, t):
    spot, t = torch.broadcast_tensors(spot, t)
    return spot * t.exp()


def test_what_is_broadcast_with_others_is_a_tensor():
    assert [item.likeliest_tensor for item in gather(from_object(broadcast))] == ["tensor"] * 2
    assert all(isinstance(value, torch.Tensor) for value in infer(from_object(broadcast))[0].args)


def of_a_kind(x, option="call"):
    return x * {"call": 1.0, "put": -1.0}[option]


def test_keys_of_a_table_that_is_written_out():
    option = gather(from_object(of_a_kind))[1]
    assert option.values == ["call", "put"]
    assert option.chosen


def split_up(x, y, name):
    a, b = x.split(4, -1)
    c, d, e = y.split([1, 2, 3], dim=1)
    f, g = y.split(split_size=2, dim=0)
    return a + b, c + d + e, f + g, name.split(","), name.split()


def test_parts_of_known_sizes_give_an_axis_its_size():
    found = evidence(split_up)
    assert (found["x"].split, found["y"].split) == ({-1: 8}, {1: 6})
    assert likeliest(found["x"]) != "str"
    assert likeliest(found["name"]) == "str"


def four(q, abcd):
    (a, b), (c, d) = abcd
    return (a * q + b) / (c * q + d)


def test_a_matrix_is_unpacked_row_by_row():
    item = evidence(four)["abcd"]
    assert (item.shape, max(item.ranks, key=item.ranks.get)) == (("=2", "=2"), 2)
    sample = infer(from_object(four))[0]
    assert sample.args[1].shape == (2, 2)


def kernel_matrix(V, items):
    """Log-determinant of chosen rows. items: distinct indices of rows"""
    S = V[items]
    return torch.logdet(S @ S.mT)


def test_a_set_of_indices_is_smaller_than_what_it_is_taken_from():
    V, items = infer(from_object(kernel_matrix))[0].args
    assert items.dim() == 1
    assert len(items) <= len(V)
    assert len(set(items.tolist())) == len(items)

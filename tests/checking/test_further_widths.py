"""Faults that show only where a module is as wide as its defaults do not make it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import gradlint
from gradlint.inputs.designed_constructions import constructed, with_constructed
from gradlint.inputs.resized import in_shape
from gradlint.model.report import TargetReport
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


class Scaled(Function):
    """x · weight / rms(x), with its length given to backward."""

    @staticmethod
    def forward(ctx, x, weight, width):
        r = x.square().mean(-1, keepdim=True).rsqrt()
        ctx.save_for_backward(x, weight, r)
        ctx.width = width
        return x * r * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, weight, r = ctx.saved_tensors
        gw = g * weight
        gx = r * gw - x * r**3 * (gw * x).sum(-1, keepdim=True) / ctx.width
        return gx, (g * x * r).sum(tuple(range(g.dim() - 1))), None


class Norm(nn.Module):
    def __init__(self, dim: int = 32):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, dim))

    def forward(self, x):
        return Scaled.apply(x, self.weight, x.shape[-1])


class NormOfOneWidth(Norm):
    def forward(self, x):
        return Scaled.apply(x, self.weight, 32)


class Scores(Function):
    @staticmethod
    def forward(ctx, q, k, scale):
        ctx.save_for_backward(q, k)
        ctx.scale = scale
        return q @ k.mT / math.sqrt(q.shape[-1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        q, k = ctx.saved_tensors
        scale = ctx.scale or 1 / math.sqrt(q.shape[-1])
        return g @ k * scale, g.mT @ q * scale, None


class Attention(nn.Module):
    scale: float | None = None

    def __init__(self, width: int = 32, heads: int = 2):
        super().__init__()
        self.h = heads
        self.qk = nn.Linear(width, 2 * width, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k = self.qk(x).view(b, t, 2, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        return Scores.apply(q, k, self.scale)


class AttentionOfOneHeadWidth(Attention):
    scale = 0.25


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (NormOfOneWidth, "with dim=33 in the constructor"),
        (AttentionOfOneHeadWidth, "with width=16 in the constructor"),
    ],
)
def test_a_constant_that_fits_the_default_width_is_found(wrong, where):
    found = {(item.severity, item.sample) for item in check(wrong).findings if item.code == "GL401"}
    assert found == {("error", where)}


@pytest.mark.parametrize("right", [Norm, Attention])
def test_right_modules_pass(right):
    report = check(right)
    assert report.verdict == "pass"
    tried = {item.label: item.verdict for item in report.tried if "constructor" in item.label}
    assert "right" in tried.values()
    assert "wrong" not in tried.values()


class SmallNorm(Norm):
    def __init__(self, dim: int = 4):
        super().__init__(dim)


def test_a_width_that_is_called_like_an_axis_is_no_axis():
    labels = [item.label for item in check(SmallNorm).tried if "constructor" in item.label]
    assert labels == ["with dim=5 in the constructor", "with dim=2 in the constructor"]


def test_parameters_and_inputs_are_made_as_wide_as_the_constructor_asks():
    op = from_object(Norm(6))
    with torch.no_grad():
        op.module.weight[1] = -0.5
    x = torch.randn(2, 6, dtype=torch.float64)
    designed = with_constructed(op, Sample("inferred", "inferred", (x,)), "dim", 9)
    assert designed is not None
    assert designed.op is not None
    (wider,) = designed.sample.args
    assert wider.shape == (2, 9)
    assert torch.equal(wider[:, :6], x)
    assert designed.op.module.weight.shape == (9,)
    assert torch.equal(designed.op.module.weight[:6], op.module.weight)
    assert op.module.weight.shape == (6,)
    assert designed.sample.label == "with dim=9 in the constructor"


class Gathered(Norm):
    """As many indices as columns, by chance, in as many places as there are rows."""

    def forward(self, x, index):
        return super().forward(x)[index]


def test_indices_do_not_become_as_many_as_columns():
    x, index = torch.randn(3, 6, dtype=torch.float64), torch.tensor([0, 2, 1, 0, 2, 2])
    op = from_object(Gathered(6))
    designed = with_constructed(op, Sample("inferred", "inferred", (x, index)), "dim", 9)
    assert designed is not None
    assert designed.sample.args[0].shape == (3, 9)
    assert torch.equal(designed.sample.args[1], index)


class Loud(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        if weight.numel() != 4:
            raise RuntimeError("other sizes than those of the caller")
        return g * weight, (g * x).sum(0)


class LoudElsewhere(nn.Module):
    def __init__(self, out_dim: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, out_dim))

    def forward(self, x):
        return Loud.apply(x, self.weight)


def test_a_loud_backward_at_a_width_that_was_chosen_is_no_fault():
    report = check(LoudElsewhere)
    assert report.verdict == "pass"
    assert {v for k, v in tried_of(report).items() if "constructor" in k} == {"raised"}


def tried_of(report: TargetReport) -> dict[str, str]:
    return {item.label: item.verdict for item in report.tried}


class Folded(nn.Module):
    """A parameter has as many axes as there are levels."""

    def __init__(self, levels: int = 2):
        super().__init__()
        self.weight = nn.Parameter(torch.ones((3,) * levels))


class Twofold(nn.Module):
    """Two axes of one size turn into two of different sizes."""

    def __init__(self, width: int = 4):
        super().__init__()
        self.a = nn.Parameter(torch.ones(4))
        self.b = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * self.a.sum() * self.b.sum()


def test_what_is_not_a_matter_of_sizes_is_not_made():
    assert constructed(Folded(), {"levels": 3}, resize=True) is None


def test_which_of_two_sizes_an_input_has_is_tried():
    op = from_object(Twofold())
    x = torch.randn(2, 4, dtype=torch.float64)
    designed = with_constructed(op, Sample("inferred", "inferred", (x,)), "width", 5)
    samples = (designed.sample, *designed.alternatives)
    assert [there.args[0].shape for there in samples] == [(2, 4), (2, 5)]


def test_more_values_are_like_those_there_were():
    rows = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64)
    made = in_shape(rows, (3, 4), seed=0)
    assert made.shape == (3, 4)
    assert bool((made > 0).all())
    assert torch.allclose(made.sum(-1), torch.ones(3, dtype=torch.float64))
    assert torch.equal(in_shape(rows, (2, 2), seed=0), rows)


def test_zeros_stay_zeros():
    for shape, other in (((4,), (6,)), ((4,), (2,)), ((3, 4), (3, 6)), ((2, 2, 2), (2, 3, 2))):
        before = torch.zeros(shape, dtype=torch.float64)
        assert torch.equal(in_shape(before, other, seed=0), before.new_zeros(other))


class Grouped(Function):
    """One matrix for each group, then the members of all groups one after the other."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        y = torch.einsum("ngi,goi->ngo", x.reshape(len(x), len(weight), -1), weight)
        return y.transpose(1, 2).flatten(1)

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        (groups, out, _), n = weight.shape, len(x)
        g = g.reshape(n, out, groups).transpose(1, 2)
        of_weight = torch.einsum("ngo,ngi->goi", g, x.reshape(n, groups, -1))
        return torch.einsum("ngo,goi->ngi", g, weight).flatten(1), of_weight


class GroupedElsewhere(Grouped):
    @staticmethod
    def backward(ctx, g):
        groups, out, _ = ctx.saved_tensors[1].shape
        exchanged = g.reshape(len(g), groups, out).transpose(1, 2).reshape(len(g), groups, out)
        return Grouped.backward(ctx, exchanged.transpose(1, 2).flatten(1))


class Groups(nn.Module):
    """As many groups as members of one, and a bias of zeros."""

    op = Grouped

    def __init__(self, in_features: int = 4, out_features: int = 4, groups: int = 2):
        super().__init__()
        members = out_features // groups, in_features // groups
        self.weight = nn.Parameter(torch.randn(groups, *members))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return self.op.apply(x, self.weight) + self.bias


class GroupsElsewhere(Groups):
    op = GroupedElsewhere


def test_as_many_groups_as_members_of_one():
    right, wrong = check(Groups), check(GroupsElsewhere)
    assert right.verdict == "pass"
    assert {tried_of(right)[f"with {name}=6 in the constructor"] for name in WIDTHS} == {"right"}
    assert "GL401" in {finding.code for finding in wrong.findings}


WIDTHS = ("in_features", "out_features")


class Stretched(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        return g * min(ctx.factor, 0.6), None


class OnlyWhenTrained(nn.Module):
    """Keeps its argument under another name; the property of that name is not to be read yet."""

    def __init__(self, factor: float = 0.5):
        super().__init__()
        self.kept = factor

    @property
    def factor(self):
        return self.kept()

    def forward(self, x):
        return Stretched.apply(x, self.kept)


def test_a_property_named_as_an_argument_of_the_constructor_is_not_read():
    report = check(OnlyWhenTrained)
    assert {(f.code, f.sample) for f in report.findings} == {
        ("GL401", "with factor=0.7 in the constructor")
    }


# Values that only other parameters than those of the constructor take beyond a threshold.


class Bounded(Function):
    """weight / max(u' weight v / bound, 1), with u and v as constants."""

    @staticmethod
    def forward(ctx, weight, u, v, bound):
        factor = (u @ weight @ v / bound).clamp(min=1.0)
        ctx.save_for_backward(weight, u, v, factor)
        ctx.bound = bound
        return weight / factor

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        weight, u, v, factor = ctx.saved_tensors
        found = g / factor
        if factor > 1:
            inner = (g * weight).sum() / factor**2
            found = found - inner / ctx.bound * torch.outer(u, v)
        return found, None, None, None


class WithoutBound(Bounded):
    @staticmethod
    def backward(ctx, g):
        ctx.bound = 1.0
        return Bounded.backward(ctx, g)


class BoundedLinear(nn.Module):
    function: Any = Bounded

    def __init__(self, size: int = 3, bound: float = 1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-0.2, 0.5, size * size).view(size, size))
        self.register_buffer("u", torch.full((size,), size**-0.5))
        self.bound = bound

    def forward(self, x):
        return x @ self.function.apply(self.weight, self.u, self.u, self.bound)


class BoundedLinearWithout(BoundedLinear):
    function = WithoutBound


def test_parameters_take_what_forward_computes_of_them_beyond_a_threshold():
    (finding,) = (f for f in check(BoundedLinearWithout).findings if f.severity != "info")
    assert (finding.code, finding.severity, finding.input) == ("GL401", "warning", "weight")
    assert finding.sample.startswith("with bound=0.7 in the constructor, where parameters are ")
    report = check(BoundedLinear)
    assert report.verdict == "pass"
    tried = {item.label: item.verdict for item in report.tried}
    assert tried[finding.sample] == "right"


# A limit that is left out by default.


class Cut(Function):
    mask = "raw"

    @staticmethod
    def forward(ctx, x, limit):
        found = x if limit is None else x.clamp(-limit, limit)
        ctx.save_for_backward(x, found)
        ctx.limit = limit
        return found.clone()

    @classmethod
    def backward(cls, ctx, g):
        raw, found = ctx.saved_tensors
        judged = raw if cls.mask == "raw" else found
        inside = 1.0 if ctx.limit is None else (judged.abs() <= ctx.limit).to(g.dtype)
        return g * inside, None


class CutByResult(Cut):
    mask = "result"


class Cell(nn.Module):
    function: Any = Cut

    def __init__(self, size: int = 3, cell_clip=None, name=None):
        super().__init__()
        self.proj = nn.Linear(size, size)
        self.cell_clip = cell_clip

    def forward(self, x):
        return self.function.apply(self.proj(x), self.cell_clip)


class CellOfResult(Cell):
    function = CutByResult


def test_a_limit_of_the_constructor_that_is_left_out_by_default_is_given():
    found = {f.sample for f in check(CellOfResult).findings if f.code == "GL401"}
    assert found == {"with cell_clip=0.5 in the constructor"}
    report = check(Cell)
    assert report.verdict == "pass"
    tried = {item.label: item.verdict for item in report.tried}
    assert tried["with cell_clip=0.5 in the constructor"] == "right"
    assert not any("name=" in label for label in tried)


class OfGroups(nn.Module):
    """x over the root of the mean square of its group, or of all of it."""

    own = 1

    def __init__(self, dim: int = 4, group_size=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.group_size = dim if group_size is None else group_size

    def forward(self, x):
        return Grouping.apply(x, self.weight, self.group_size, self.own)


class OfAll(OfGroups):
    own = 0


class Grouping(Function):
    @staticmethod
    def forward(ctx, x, weight, size, own):
        r = x.unflatten(-1, (-1, size)).square().mean(-1, keepdim=True).rsqrt()
        r = r.expand(*r.shape[:-1], size).flatten(-2)
        ctx.save_for_backward(x, weight, r)
        ctx.size = size if own else x.shape[-1]
        return x * r * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        x, weight, r = ctx.saved_tensors
        inner = (g * weight * x * r).unflatten(-1, (-1, ctx.size)).mean(-1, keepdim=True)
        inner = inner.expand(*inner.shape[:-1], ctx.size).flatten(-2)
        return r * (g * weight - x * r * inner), (g * x * r).flatten(0, -2).sum(0), None, None


def test_an_integer_in_place_of_none():
    label = "with group_size=2 in the constructor"
    assert tried_of(check(OfGroups))[label] == "right"
    assert {item.sample for item in check(OfAll).findings if item.code == "GL401"} == {label}


class Weighed(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.sin() if weight is None else x.sin() * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g * x.cos() if weight is None else g * x.cos() * weight, None


class Unweighed(Weighed):
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos(), None


class OfClasses(nn.Module):
    op = Weighed

    def __init__(self, weight=None):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return self.op.apply(x, self.weight)


class OfNoClasses(OfClasses):
    op = Unweighed


def test_a_vector_of_weights_in_place_of_none():
    label = "with weight of 4 numbers in the constructor"
    assert tried_of(check(OfClasses))[label] == "right"
    assert {item.sample for item in check(OfNoClasses).findings if item.code == "GL401"} == {label}


class Widths(Function):
    sign = staticmethod(torch.sign)

    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x * width.abs()

    @classmethod
    def backward(cls, ctx, g):
        x, width = ctx.saved_tensors
        return g * width.abs(), (g * x * cls.sign(width)).flatten(0, -2).sum(0)


class SignLost(Widths):
    sign = staticmethod(torch.ones_like)


class OfWidths(nn.Module):
    op = Widths

    def __init__(self, width: int = 4):
        super().__init__()
        self.widths = nn.Parameter(torch.linspace(0.5, 1.5, width))

    def forward(self, x):
        return self.op.apply(x, self.widths)


class OfWidthsWithoutSign(OfWidths):
    op = SignLost


def test_parameters_of_both_signs_where_code_takes_the_sign_away():
    label = "where parameters have both signs"
    assert tried_of(check(OfWidths))[label] == "right"
    found = [item for item in check(OfWidthsWithoutSign).findings if item.code == "GL401"]
    assert {(item.severity, item.sample) for item in found} == {("warning", label)}


class Bag(nn.Module):
    """Sums, or means, of rows of a table; what is padding does not count."""

    op = Weighed

    def __init__(self, count: int = 6, mode="sum", padding_idx=None):
        super().__init__()
        if mode not in ("sum", "mean"):
            raise ValueError(mode)
        self.mode, self.padding_idx = mode, padding_idx
        self.table = nn.Parameter(torch.linspace(-1.0, 1.0, 3 * count).reshape(count, 3))

    def forward(self, rows):
        return BagFunction.apply(self.table, rows, self.mode, self.padding_idx, type(self) is Bag)


class BagOfAll(Bag):
    pass


class BagFunction(Function):
    @staticmethod
    def forward(ctx, table, rows, mode, padding_idx, right):
        kept = torch.ones_like(rows) if padding_idx is None else (rows != padding_idx).long()
        count = kept.sum(1).clamp(min=1) if mode == "mean" else torch.ones_like(rows[:, 0])
        ctx.save_for_backward(rows, kept, count)
        ctx.shape, ctx.all = table.shape, mode == "mean" and not right
        return (table[rows] * kept[..., None]).sum(1) / count[:, None]

    @staticmethod
    def backward(ctx, g):
        rows, kept, count = ctx.saved_tensors
        g = g / (rows.shape[1] if ctx.all else count[:, None])
        each = (g[:, None] * kept[..., None]).flatten(0, 1)
        return (g.new_zeros(ctx.shape).index_add(0, rows.flatten(), each), *[None] * 4)


def test_padding_under_another_option():
    assert "wrong" not in tried_of(check(Bag)).values()
    found = [item for item in check(BagOfAll).findings if item.code == "GL401"]
    assert found
    assert all("mode='mean' in the constructor, padding_idx=" in item.sample for item in found)

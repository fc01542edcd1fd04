"""Faults that show only with a third tensor in a list, at positive values, or between two
thresholds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradlint
from gradlint.inputs.designed_indices import _every_other_negative
from gradlint.inputs.designed_lists import one_more, with_empty_part
from gradlint.model.report import TargetReport
from gradlint.model.sample import Sample
from gradlint.targets.build import from_object


class Packed(Function):
    """The mean over the sequences of a pack of their means; empty ones do not count."""

    share = staticmethod(lambda lengths: (lengths > 0).sum())

    @staticmethod
    def weights(lengths):
        each = 1 / (lengths.clamp(min=1) * (lengths > 0).sum())
        return each.double().repeat_interleave(lengths)

    @staticmethod
    def forward(ctx, losses, bounds):
        ctx.save_for_backward(bounds)
        return (losses * Packed.weights(bounds.diff())).sum()

    @classmethod
    def backward(cls, ctx, g):
        (bounds,) = ctx.saved_tensors
        lengths = bounds.diff()
        each = g / (lengths.clamp(min=1) * cls.share(lengths))
        return each.repeat_interleave(lengths), None


class PackedWrong(Packed):
    """The mean over the sequences of a pack; empty ones do not count."""

    share = staticmethod(len)


class PackedFull(PackedWrong):
    """The mean over the sequences of a pack, none of which is empty."""


@pytest.mark.parametrize(
    ("op", "empty", "severity"),
    [(Packed, "right", []), (PackedWrong, "wrong", ["warning"]), (PackedFull, "", [])],
)
def test_a_segment_without_elements(op, empty, severity):
    losses = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = (losses, torch.tensor([0, 2, 5, 6]))
    flags = {"seed": 0, "order": 1, "select": ["GL401"]}
    [report] = gradlint.check(op, [given], **flags).targets
    assert tried(report).get("where a segment of `bounds` is empty", "") == empty
    assert [item.severity for item in report.findings if item.severity != "info"] == severity


def check(thing: Any) -> TargetReport:
    flags: dict[str, Any] = {"seed": 0, "order": 1, "select": ["GL1", "GL2", "GL4"]}
    return gradlint.check(thing, **flags).targets[0]


def tried(report: TargetReport) -> dict[str, str]:
    return {item.label: item.verdict for item in report.tried}


class Gates(Function):
    """The product of the sigmoids of all tensors."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.save_for_backward(*tensors)
        return torch.stack([t.sigmoid() for t in tensors]).prod(0)

    @staticmethod
    def backward(ctx, g):
        tensors = ctx.saved_tensors
        out = torch.stack([t.sigmoid() for t in tensors]).prod(0)
        return tuple(g * out * (1 - t.sigmoid()) for t in tensors)


class GatesOfTwo(Gates):
    @staticmethod
    def backward(ctx, g):
        tensors = ctx.saved_tensors
        out = torch.stack([t.sigmoid() for t in tensors]).prod(0)
        return tuple(g * out * (1 - tensors[min(k, 1)].sigmoid()) for k in range(len(tensors)))


class PowerMean(Function):
    """(mean of xᵖ)^(1/p): any x with p = 1, x above zero with other p."""

    @staticmethod
    def forward(ctx, x, p=1.0):
        m = x.pow(p).mean(-1, keepdim=True).pow(1 / p)
        ctx.save_for_backward(x, m)
        ctx.p = p
        return m.squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        x, m = ctx.saved_tensors
        return g.unsqueeze(-1) * (x / m) ** (ctx.p - 1) / x.shape[-1], None


class PowerMeanOfOne(PowerMean):
    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return g.unsqueeze(-1) * x ** (ctx.p - 1) / x.shape[-1], None


class HardSwish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (x + 3).clamp(0, 6) / 6

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inside = (x > -3.0) & (x < 3.0)
        return g * torch.where(inside, (2 * x + 3) / 6, (x > 0).to(x.dtype))


class HardSwishTooWide(HardSwish):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inside = (x > -3.6) & (x < 3.0)
        return g * torch.where(inside, (2 * x + 3) / 6, (x > 0).to(x.dtype))


class Trapezoids(Function):
    """The integral of y (..., n) over x (n)."""

    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return (0.5 * (x[1:] - x[:-1]) * (y[..., 1:] + y[..., :-1])).sum(-1)

    @staticmethod
    def backward(ctx, g):
        pad = torch.nn.functional.pad
        y, x = ctx.saved_tensors
        half, g = 0.5 * (x[1:] - x[:-1]), g.unsqueeze(-1)
        mean = 0.5 * g * (y[..., 1:] + y[..., :-1])
        of_x = (pad(mean, (1, 0)) - pad(mean, (0, 1))).reshape(-1, x.numel())
        return g * (pad(half, (1, 0)) + pad(half, (0, 1))), of_x.sum(0)


class TrapezoidsOfFirst(Trapezoids):
    @staticmethod
    def backward(ctx, g):
        of_y, _ = Trapezoids.backward(ctx, g)
        y, x = ctx.saved_tensors
        first = y.reshape(-1, x.numel())[:1]
        mean = 0.5 * g.reshape(-1, 1)[:1] * (first[:, 1:] + first[:, :-1])
        pad = torch.nn.functional.pad
        return of_y, (pad(mean, (1, 0)) - pad(mean, (0, 1)))[0]


class Total(Trapezoids):
    """The integrals of all rows are summed: two rows are no batch."""

    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return (0.5 * (x[1:] - x[:-1]) * (y[..., 1:] + y[..., :-1])).sum()

    @staticmethod
    def backward(ctx, g):
        return Trapezoids.backward(ctx, g.expand(ctx.saved_tensors[0].shape[:-1]))


class Haar(Function):
    """Sums and differences of neighbours, of the sums again on each further level."""

    @staticmethod
    def forward(ctx, x, levels=1):
        ctx.levels = levels
        parts = []
        for _ in range(levels):
            even, odd = x[..., 0::2], x[..., 1::2]
            parts.append(even - odd)
            x = 0.5 * (even + odd)
        return torch.cat([x, *parts[::-1]], -1)

    @staticmethod
    def backward(ctx, g):
        n, low = g.shape[-1], g[..., : g.shape[-1] >> ctx.levels]
        for level in range(ctx.levels, 0, -1):
            high = g[..., n >> level : n >> (level - 1)]
            low = torch.stack([0.5 * low + high, 0.5 * low - high], -1).flatten(-2)
        return low, None


class HaarOfOneLevel(Haar):
    @staticmethod
    def backward(ctx, g):
        n, low = g.shape[-1], 0.5 * g[..., : g.shape[-1] >> ctx.levels]
        for level in range(ctx.levels, 0, -1):
            high = g[..., n >> level : n >> (level - 1)]
            low = torch.stack([low + high, low - high], -1).flatten(-2)
        return low, None


class Over(Function):
    """alpha · front + (1 − alpha) · back, with one alpha for all columns or one for each."""

    @staticmethod
    def forward(ctx, front, back, alpha):
        ctx.save_for_backward(front, back, alpha)
        return alpha * front + (1 - alpha) * back

    @staticmethod
    def backward(ctx, g):
        front, back, alpha = ctx.saved_tensors
        of_alpha = g * (front - back)
        if alpha.shape[1] == 1:
            of_alpha = of_alpha.sum(1, keepdim=True)
        return g * alpha, g * (1 - alpha), of_alpha


class OverOnAverage(Over):
    @staticmethod
    def backward(ctx, g):
        front, back, alpha = ctx.saved_tensors
        of_alpha = g * (front - back)
        if alpha.shape[1] == 1:
            of_alpha = of_alpha.mean(1, keepdim=True)
        return g * alpha, g * (1 - alpha), of_alpha


class OverUnasked(Over):
    """It never asks for the size of alpha: that it broadcasts is arithmetic."""

    @staticmethod
    def backward(ctx, g):
        front, back, alpha = ctx.saved_tensors
        return g * alpha, g * (1 - alpha), g * (front - back)


@pytest.mark.parametrize(
    ("wrong", "where", "name"),
    [
        (GatesOfTwo, "with 3 tensors in `tensors`", "tensors[2]"),
        (PowerMeanOfOne, "with p=3.25", "x"),
        (HardSwishTooWide, "where values are on both sides of -3.6, 0, 3, 6", "x"),
        (HaarOfOneLevel, "with levels=2", "x"),
        (TrapezoidsOfFirst, "where `y` is a batch", "x"),
        (OverOnAverage, "where `alpha` is broadcast along axis 1", "alpha"),
    ],
)
def test_a_fault_of_unusual_inputs_is_found(wrong, where, name):
    found = [item for item in check(wrong).findings if item.code == "GL401"]
    severity = "warning" if "batch" in where else "error"  # another rank
    told = [(item.severity, item.sample, item.input) for item in found]
    assert told == [(severity, where, name)]


@pytest.mark.parametrize(
    ("right", "where"),
    [
        (Gates, "with 3 tensors in `tensors`"),
        (PowerMean, "with p=3.25"),
        (HardSwish, "where values are on both sides of -3, 0, 3, 6"),
        (Haar, "with levels=2"),
        (Trapezoids, "where `y` is a batch"),
        (Over, "where `alpha` is broadcast along axis 1"),
    ],
)
def test_right_twins_pass_there(right, where):
    report = check(right)
    assert report.verdict == "pass"
    assert report.findings == []
    assert tried(report)[where] == "right"


def test_rows_that_are_summed_are_no_batch():
    report = check(Total)
    assert report.verdict == "pass"
    assert tried(report)["where `y` is a batch"] == "refused"


def test_broadcasting_that_nobody_asks_for_stays_an_accident():
    report = check(OverUnasked)
    assert report.verdict == "pass"
    assert "wrong" not in tried(report).values()


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def longer(function: Any, *args: Any, **domains: str) -> list[tuple[str, list[int]]]:
    """The labels, and how many tensors each argument holds."""
    op = from_object(function, name=function.__name__)
    found = one_more(op, Sample("inferred", "inferred", args, domains=domains))
    return [(item.sample.label, [len(arg) for arg in item.sample.args]) for item in found]


def paired(xs, ys, zs=()):
    return sum(x * y for x, y in zip(xs, ys, strict=True)) + sum(zs)


def test_lists_of_one_length_grow_together():
    two, three = [randn(3), randn(3)], (randn(2), randn(2), randn(2))
    assert longer(paired, two, two, three) == [
        ("with 3 tensors in `xs`, `ys`", [3, 3, 3]),
        ("with 4 tensors in `zs`", [2, 2, 4]),
    ]


def test_what_is_no_list_of_like_tensors_keeps_its_length():
    assert longer(paired, [randn(3), randn(4)], [randn(3)], (2, 3)) == []
    assert longer(paired, [randn(2, 2)] * 2, randn(2, 2), xs="rotations") == []


class GroupedProduct(Function):
    """Rows sorted by group times each group's own weight."""

    @staticmethod
    def forward(ctx, x, sizes, *weights):
        ctx.sizes = sizes
        ctx.save_for_backward(x, *weights)
        return torch.cat([part @ w for part, w in zip(x.split(sizes), weights, strict=True)])

    @staticmethod
    def backward(ctx, grad):
        x, *weights = ctx.saved_tensors
        parts = zip(x.split(ctx.sizes), grad.split(ctx.sizes), weights, strict=True)
        found = [(g @ w.t(), part.t() @ g) for part, g, w in parts]
        return (torch.cat([by_x for by_x, _ in found]), None, *(by_w for _, by_w in found))


class NothingForTheEmpty(GroupedProduct):
    @staticmethod
    def backward(ctx, grad):
        by_x, none, *by_w = GroupedProduct.backward(ctx, grad)
        return (by_x, none, *(w for w, size in zip(by_w, ctx.sizes, strict=True) if size))


def test_a_part_may_be_empty():
    assert check(GroupedProduct).verdict == "pass"
    report = check(NothingForTheEmpty)
    (found,) = [f for f in report.findings if f.severity != "info"]
    assert (found.code, found.sample) == ("GL101", "where the first of `sizes` is 0")


def test_numbers_that_are_no_parts_of_an_axis_stay():
    op = from_object(paired, name="paired")
    for sizes in ((2, 2, 1), [4], [0, 4], (1.0, 3.0)):
        assert list(with_empty_part(op, Sample("given", "given", (randn(4), sizes)))) == []
    (designed,) = with_empty_part(op, Sample("given", "given", (randn(3), (1, 2))))
    assert designed.sample.args[1] == (0, 3)


def test_the_tensor_that_is_added_is_a_leaf_of_its_own():
    first, last = randn(3), randn(3)
    op = from_object(paired, name="paired")
    (designed,) = one_more(op, Sample("inferred", "inferred", ([first, last], first)))
    kept, also, added = designed.sample.args[0]
    assert kept is first
    assert also is last
    assert added.is_leaf
    assert added.requires_grad
    assert torch.allclose(added, 0.6 * last + 0.3 * first)


def test_a_note_says_that_values_are_positive():
    (finding,) = [item for item in check(PowerMeanOfOne).findings if item.code == "GL401"]
    assert finding.sample == "with p=3.25"
    (sample,) = [item for item in check(PowerMeanOfOne).samples if item.label == "with p=3.25"]
    assert "all values are positive" in sample.notes


@torch.library.custom_op("gradlint_unusual::pressure", mutates_args=())
def pressure(temp: torch.Tensor) -> torch.Tensor:
    return torch.where(temp < 0, (0.3 * temp).exp(), (0.2 * temp).exp())


@torch.library.custom_op("gradlint_unusual::wrong_pressure", mutates_args=())
def wrong_pressure(temp: torch.Tensor) -> torch.Tensor:
    return torch.where(temp < 0, (0.3 * temp).exp(), (0.2 * temp).exp())


def _saves(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _slope(ctx: Any, g: torch.Tensor) -> torch.Tensor:
    temp, out = ctx.saved_tensors
    return g * out * torch.where(temp < 0, 0.3, 0.2)


pressure.register_autograd(_slope, setup_context=_saves)
wrong_pressure.register_autograd(
    lambda ctx, g: 0.2 * g * ctx.saved_tensors[1], setup_context=_saves
)


def test_what_is_compared_inside_of_a_custom_operator_is_seen():
    """Its argument is guessed to be one number, which has one sign."""
    assert check(pressure).verdict == "pass"
    report = check(wrong_pressure)
    assert tried(report)["where `temp` is below 0"] == "wrong"
    assert report.verdict == "fail"


class Combined(Function):
    """Rows of a table by their weights; none for a slot below zero."""

    @staticmethod
    def forward(ctx, table, slot, gates):
        ctx.save_for_backward(table, slot, gates)
        kept = (slot >= 0).to(gates.dtype)
        return (table[slot.clamp(min=0)] * (gates * kept).unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        table, slot, gates = ctx.saved_tensors
        kept = (slot >= 0).to(gates.dtype)
        safe = slot.clamp(min=0)
        by_gates = torch.einsum("nd,nkd->nk", grad, table[safe]) * kept
        by_row = ((gates * kept).unsqueeze(-1) * grad.unsqueeze(1)).flatten(0, 1)
        return torch.zeros_like(table).index_add(0, safe.flatten(), by_row), None, by_gates


class NeverDropped(Combined):
    @staticmethod
    def backward(ctx, grad):
        table, slot, _ = ctx.saved_tensors
        by_table, none, _ = Combined.backward(ctx, grad)
        return by_table, none, torch.einsum("nd,nkd->nk", grad, table[slot.clamp(min=0)])


def test_weights_beside_indices_and_indices_below_zero():
    """The number of axes of the indices is known from backward alone."""
    for seed in range(4):
        report = gradlint.check(Combined, seed=seed, order=1, select=["GL1", "GL4"]).targets[0]
        assert report.verdict == "pass"
        flags = {"seed": seed, "order": 1, "select": ["GL1", "GL4"]}
        report = gradlint.check(NeverDropped, **flags).targets[0]
        assert tried(report)["where `slot` has negative indices"] == "wrong"


class Chunked(Function):
    """Sums of squares against a weight, a few rows at a time."""

    @staticmethod
    def forward(ctx, x, weight, chunk_size=1024):
        ctx.save_for_backward(x, weight)
        ctx.chunk_size = chunk_size
        return torch.cat([(part @ weight).square().sum(-1) for part in x.split(chunk_size)])

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        by_x, by_weight = [], torch.zeros_like(weight)
        for part, of_part in zip(x.split(ctx.chunk_size), g.split(ctx.chunk_size), strict=True):
            slope = 2 * of_part[:, None] * (part @ weight)
            by_x.append(slope @ weight.t())
            by_weight = by_weight + part.t() @ slope
        return torch.cat(by_x), by_weight, None


class LastChunk(Chunked):
    @staticmethod
    def backward(ctx, g):
        by_x, _, _ = Chunked.backward(ctx, g)
        x, weight = ctx.saved_tensors
        part, of_part = x.split(ctx.chunk_size)[-1], g.split(ctx.chunk_size)[-1]
        return by_x, part.t() @ (2 * of_part[:, None] * (part @ weight)), None


def test_there_are_several_chunks():
    """All that inference makes fits into one of the default size."""
    assert check(Chunked).verdict == "pass"
    report = check(LastChunk)
    assert tried(report)["with chunk_size=2"] == "wrong"
    assert report.verdict == "fail"


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([0, 2, 2, 0], [0, -1, 2, -3]),
        ([[0, 0, 2], [0, 1, 2]], [[0, -3, 2], [-3, 1, -1]]),
        ([[0, 1], [1, 2], [2, 3], [0, 3], [1, 3]], [[0, 1], [-3, -2], [2, 3], [-4, -1], [1, 3]]),
    ],
)
def test_every_other_index_is_counted_from_the_end(indices: Any, expected: Any):
    """Of the ends of an edge, both: one of them would be the other one's atom by chance."""
    made = _every_other_negative(torch.tensor(indices), alike=True)
    assert made.reshape(torch.tensor(indices).shape).tolist() == expected

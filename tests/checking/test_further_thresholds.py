"""Further samples on the other side of thresholds that inferred inputs never pass."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import gradlint
from gradlint.model.report import TargetReport


def op(forward: Any, backward: Any) -> type[Function]:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Op", (Function,), {**members, "__doc__": forward.__doc__})


def check(thing: Any) -> TargetReport:
    return gradlint.check(thing, seed=0, order=1, select=["GL1", "GL2", "GL4"]).targets[0]


def red(report: TargetReport) -> list[tuple[str, str]]:
    return [(f.code, f.sample or "") for f in report.findings if f.severity != "info"]


def labels(report: TargetReport) -> dict[str, str]:
    return {item.label: item.verdict for item in report.tried}


#: By what values are made larger and smaller where no threshold is to be passed.
USUAL = {"4", "-10", "30", "0.03"}


def factors(report: TargetReport) -> set[str]:
    found = (re.search(r"where values are (\S+) times", label) for label in labels(report))
    return {one[1] for one in found if one}


# A deviation below its floor, which only another floor than the default lets rows come near.


def standardized(ctx, x, floor=1e-3):
    centred = x - x.mean(-1, keepdim=True)
    std = centred.square().mean(-1, keepdim=True).sqrt()
    ctx.save_for_backward(centred, std)
    ctx.floor = floor
    return centred / std.clamp_min(floor)


def standardized_backward(masked: bool):
    def backward(ctx, g):
        centred, std = ctx.saved_tensors
        scale = std.clamp_min(ctx.floor)
        y = centred / scale
        live = (std > ctx.floor).to(y.dtype) if masked else 1.0
        found = (g - live * y * (g * y).mean(-1, keepdim=True)) / scale
        return found - found.mean(-1, keepdim=True), None

    return backward


def test_an_intermediate_value_gets_below_a_floor_that_was_moved():
    ((code, where),) = red(check(op(standardized, standardized_backward(masked=False))))
    assert code == "GL401"
    assert where.startswith("with floor=0.1, where values are 0.0")
    report = check(op(standardized, standardized_backward(masked=True)))
    assert red(report) == []
    assert labels(report)[where] == "right"


class Standardized(nn.Module):
    def __init__(self, floor: float = 1e-3, masked: bool = True):
        super().__init__()
        self.floor = floor
        self.function = op(standardized, standardized_backward(masked))

    def forward(self, x):
        return self.function.apply(x, self.floor)


class WithoutMask(Standardized):
    def __init__(self, floor: float = 1e-3):
        super().__init__(floor, masked=False)


def test_so_does_one_below_a_floor_of_the_constructor():
    ((code, where),) = red(check(WithoutMask))
    assert code == "GL401"
    assert where.startswith("with floor=0.1 in the constructor, where values are 0.0")
    report = check(Standardized)
    assert red(report) == []
    assert labels(report)[where] == "right"


# A series for small angles: the comparison says that its branch is meant.


def turned(ctx, w):
    """w: (N, 3) rotation vectors; w times sin(|w|) / |w|"""
    squared = w.square().sum(-1, keepdim=True)
    small = squared < 1e-6
    angle = torch.where(small, 1.0, squared).sqrt()
    ctx.save_for_backward(w, squared, angle)
    return w * torch.where(small, 1 - squared / 6, angle.sin() / angle)


def turned_backward(factor: float):
    def backward(ctx, g):
        w, squared, angle = ctx.saved_tensors
        small = squared < 1e-6
        ratio = torch.where(small, factor * (1 - squared / 6), angle.sin() / angle)
        slope = (angle * angle.cos() - angle.sin()) / angle**3
        slope = torch.where(small, -1 / 3, slope)
        return g * ratio + slope * (g * w).sum(-1, keepdim=True) * w

    return backward


def test_a_branch_for_small_values_is_reached():
    found = red(check(op(turned, turned_backward(1.5))))
    (where,) = [where for code, where in found if code == "GL401"]
    assert where.startswith("where values are 0.000")
    report = check(op(turned, turned_backward(1.0)))
    assert red(report) == []
    assert labels(report)[where] == "right"


def unit(ctx, x):
    norm = x.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    ctx.save_for_backward(x / norm, norm)
    return x / norm


def unit_backward(ctx, g):
    y, norm = ctx.saved_tensors
    return (g - (g * y).sum(-1, keepdim=True) * y) / norm


def test_what_a_tiny_guard_against_zero_does_is_no_fault():
    report = check(op(unit, unit_backward))
    assert red(report) == []
    assert factors(report) <= USUAL


def shifted(ctx, x):
    """What is compared stays above its threshold however small x is."""
    ctx.save_for_backward(x)
    size = 1.0 + x.square()
    return torch.where(size > 0.5, size.log(), 0.0)


def shifted_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return g * 2 * x / (1.0 + x.square())


def test_a_threshold_that_nothing_reaches_is_left_alone():
    report = check(op(shifted, shifted_backward))
    assert red(report) == []
    assert factors(report) <= USUAL


# Bounds that forward itself gives to what its name says is positive.


def rendered(ctx, sigma, deltas):
    """sigma: (R, S) densities; deltas: (R, S)"""
    alpha = 1 - torch.exp(-torch.relu(sigma) * deltas)
    ctx.save_for_backward(sigma, deltas)
    return alpha


def rendered_backward(masked: bool):
    def backward(ctx, g):
        sigma, deltas = ctx.saved_tensors
        slope = g * torch.exp(-torch.relu(sigma) * deltas)
        live = (sigma > 0) if masked else 1.0
        return slope * deltas * live, slope * torch.relu(sigma)

    return backward


def test_what_relu_takes_is_negative_too():
    where = "where `sigma` is on both sides of 0"
    found = check(op(rendered, rendered_backward(masked=False)))
    assert red(found) == [("GL401", where)]
    report = check(op(rendered, rendered_backward(masked=True)))
    assert red(report) == []
    assert labels(report)[where] == "right"


def deviation(ctx, var):
    """var: (N, D), a variance"""
    ctx.save_for_backward(var)
    return var.clamp(min=0.0).sqrt()


def deviation_backward(ctx, g):
    (var,) = ctx.saved_tensors
    return g * 0.5 / var.sqrt()


def test_a_guard_against_rounding_asks_for_no_negative_numbers():
    report = check(op(deviation, deviation_backward))
    assert red(report) == []
    assert not any("on both sides of 0" in label for label in labels(report))


def scored(ctx, mean, target, log_var):
    """mean, target: (N, D); log_var: () or (N, D)"""
    bounded = log_var.clamp(min=-7.0)
    ctx.save_for_backward(mean - target, log_var)
    return 0.5 * (bounded + (mean - target).square() * torch.exp(-bounded))


def scored_backward(masked: bool):
    def backward(ctx, g):
        diff, log_var = ctx.saved_tensors
        weight = torch.exp(-log_var.clamp(min=-7.0))
        found = 0.5 * g * (1 - diff.square() * weight)
        if masked:
            found = found * (log_var >= -7.0)
        return g * diff * weight, -g * diff * weight, found.sum_to_size(log_var.shape)

    return backward


def test_a_logarithm_is_any_number_and_a_single_one_passes_its_bound():
    found = check(op(scored, scored_backward(masked=False)))
    assert ("GL401", "where values are on both sides of -7") in red(found)
    assert {code for code, _ in red(found)} <= {"GL401", "GL402"}  # it passes it at -10 too
    assert red(check(op(scored, scored_backward(masked=True)))) == []


def floored(ctx, x, sigma):
    """x: (N, D); sigma: (), positive"""
    ctx.save_for_backward(x, sigma)
    return x / sigma.clamp(min=1e-3)


def floored_backward(masked: bool):
    def backward(ctx, g):
        x, sigma = ctx.saved_tensors
        scale = sigma.clamp(min=1e-3)
        live = (sigma >= 1e-3) if masked else 1.0
        return g / scale, (-g * x / scale**2).sum() * live

    return backward


@pytest.mark.parametrize("masked", [True, False])
def test_a_single_number_is_put_on_the_other_side(masked):
    report = check(op(floored, floored_backward(masked)))
    where = "where `sigma` is below 0.001"
    assert labels(report)[where] == ("right" if masked else "wrong")
    assert red(report) == ([] if masked else [("GL401", where)])


# Angles and distances, which no factor of all inputs changes much.


def angle(ctx, a, b):
    """a, b: (N, D)"""
    p, q = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
    cosine = (a / p * (b / q)).sum(-1, keepdim=True)
    ctx.save_for_backward(a / p, b / q, p, q, cosine)
    return torch.acos(cosine.clamp(-0.999, 0.999))


def angle_backward(masked: bool):
    def backward(ctx, g):
        u, v, p, q, cosine = ctx.saved_tensors
        slope = -g / (1 - cosine.clamp(-0.999, 0.999).square()).sqrt()
        if masked:
            slope = slope * (cosine.abs() < 0.999)
        return slope * (v - cosine * u) / p, slope * (u - cosine * v) / q

    return backward


def test_two_inputs_get_near_one_another():
    where = "where `b` is near `a`"
    found = red(check(op(angle, angle_backward(masked=False))))
    assert set(found) == {("GL401", where)}
    report = check(op(angle, angle_backward(masked=True)))
    assert red(report) == []
    assert labels(report)[where] == "right"


def alike(ctx, z):
    """z: (N, D); products of unit rows, of which those above 0.995 count as one"""
    size = z.norm(dim=-1, keepdim=True)
    unit = z / size
    i, j = torch.triu_indices(len(z), len(z), 1)
    cosine = (unit[i] * unit[j]).sum(-1, keepdim=True)
    ctx.save_for_backward(unit, size, cosine, i, j)
    return torch.where(cosine > 0.995, 1.0, cosine)


def alike_backward(masked: bool):
    def backward(ctx, g):
        unit, size, cosine, i, j = ctx.saved_tensors
        if masked:
            g = torch.where(cosine > 0.995, 0.0, g)
        found = torch.zeros_like(unit)
        found = found.index_add(0, i, g * (unit[j] - cosine * unit[i]))
        return found.index_add(0, j, g * (unit[i] - cosine * unit[j])) / size

    return backward


def test_so_do_the_rows_of_one_input():
    where = "where rows of `z` are near one another"
    assert red(check(op(alike, alike_backward(masked=False)))) == [("GL401", where)]
    report = check(op(alike, alike_backward(masked=True)))
    assert red(report) == []
    assert labels(report)[where] == "right"


def distance(ctx, u, v):
    """u, v: (N, D)"""
    gap = (u - v).norm(dim=-1, keepdim=True)
    ctx.save_for_backward(u - v, gap)
    return gap.square() / 2


def distance_backward(ctx, g):
    delta, _ = ctx.saved_tensors
    return g * delta, -g * delta


def test_inputs_stay_apart_where_nothing_is_compared():
    report = check(op(distance, distance_backward))
    assert red(report) == []
    assert not any("near" in label for label in labels(report))


# Numbers that Python compares, and thresholds of backward alone.


def softened(ctx, v):
    size = torch.linalg.vector_norm(v)
    ctx.save_for_backward(v, size)
    if size.item() < 1e-2:
        return size.square() / 2e-2 + 0.5e-2
    return size.clone()


def softened_backward(factor: float):
    def backward(ctx, g):
        v, size = ctx.saved_tensors
        return g * v / 1e-2 * factor if size.item() < 1e-2 else g * v / size

    return backward


def test_a_branch_of_python_is_reached():
    found = red(check(op(softened, softened_backward(0.5))))
    (where,) = {where for code, where in found if code == "GL401"}
    assert where.startswith("where values are 0.00")
    report = check(op(softened, softened_backward(1.0)))
    assert red(report) == []
    assert labels(report)[where] == "right"


def sizes(ctx, x):
    size = x.norm(dim=-1, keepdim=True)
    ctx.save_for_backward(x, size)
    return size.clone()


def sizes_backward(threshold: float):
    def backward(ctx, g):
        x, size = ctx.saved_tensors
        return torch.where(size > threshold, g * x / size, 0.0)

    return backward


def test_what_backward_alone_compares_with_is_passed_unless_it_is_tiny():
    where = "where values are 0.011 times as large"
    assert ("GL401", where) in red(check(op(sizes, sizes_backward(0.05))))
    report = check(op(sizes, sizes_backward(1e-8)))
    assert red(report) == []
    assert factors(report) <= USUAL


def unit_within(ctx, x, eps=1e-8):
    norm = x.norm(dim=-1, keepdim=True).clamp(min=eps)
    ctx.save_for_backward(x / norm, norm)
    return x / norm


def unit_within_backward(ctx, g):
    return unit_backward(ctx, g), None


def test_a_guard_that_gradlint_made_large_is_information():
    report = check(op(unit_within, unit_within_backward))
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("GL401", "info")
    assert finding.grounds.explained == "guard"
    assert (finding.sample or "").startswith("with eps=0.1, where values are 0.0")


class Pairs(Function):
    @staticmethod
    def forward(ctx, x, cutoff):
        ctx.save_for_backward(x)
        ctx.cutoff = cutoff
        r2 = x.square().sum(-1)
        return 1 / r2 if cutoff is None else (r2 < cutoff**2) / r2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        r2 = x.square().sum(-1)
        if ctx.cutoff is not None:
            g = g * (r2 < ctx.cutoff**2)
        return -2 * (g / r2**2)[:, None] * x, None


class PairsBeyondTheCutoff(Pairs):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -2 * (g / x.square().sum(-1) ** 2)[:, None] * x, None


def pairs(x: torch.Tensor, cutoff: float | None = None) -> torch.Tensor:
    """Energies of pairs by their distances x (N, 3), zero beyond the cutoff."""
    return Pairs.apply(x, cutoff)


def pairs_beyond_the_cutoff(x: torch.Tensor, cutoff: float | None = None) -> torch.Tensor:
    """Energies of pairs by their distances x (N, 3), zero beyond the cutoff."""
    return PairsBeyondTheCutoff.apply(x, cutoff)


def test_where_a_cutoff_leaves_nothing_there_is_no_staircase():
    """All distances are beyond it, so that forward is zero: that is no step with a surrogate."""
    assert red(check(pairs)) == []
    finding = check(pairs_beyond_the_cutoff).findings[0]
    assert (finding.code, finding.severity) == ("GL401", "error")
    assert "surrogate" not in finding.cause_text
    assert "straight-through" not in finding.cause_text


# Beyond a margin that no factor of the inputs, and no random ones, lead to.


def margin(ctx, x, anchors):
    """x: (N, D), anchors: (N, D); a cosine that goes on linearly where it is small"""
    cosine = torch.nn.functional.cosine_similarity(x, anchors)
    ctx.save_for_backward(x, anchors, cosine)
    return torch.where(cosine > -0.9, cosine.square(), -1.8 * cosine - 0.81)


def margin_backward(linear: bool):
    def backward(ctx, g):
        x, anchors, cosine = ctx.saved_tensors
        slope = torch.where(cosine > -0.9, 2 * cosine, -1.8) if linear else 2 * cosine
        ends = [(x, anchors), (anchors, x)]
        found = []
        for one, other in ends:
            unit, size = one / one.norm(dim=-1, keepdim=True), one.norm(dim=-1, keepdim=True)
            away = other / other.norm(dim=-1, keepdim=True) - cosine[:, None] * unit
            found.append((g * slope)[:, None] * away / size)
        return tuple(found)

    return backward


@pytest.mark.parametrize("given", [False, True])
def test_a_margin_is_passed_by_following_what_is_compared(given: bool) -> None:
    x = torch.tensor([[0.4, -1.1, 0.3, 0.8], [1.2, 0.5, -0.7, 0.1]], dtype=torch.float64)
    inputs = [(x.requires_grad_(), x.detach().flip(0).clone().requires_grad_())] if given else None
    select = ["GL1", "GL2", "GL4"]

    def told(backward: Any) -> TargetReport:
        return gradlint.check(op(margin, backward), inputs, seed=0, order=1, select=select)

    label = "where what is compared with -0.9 is below it"
    assert ("GL401", label) in red(told(margin_backward(linear=False)).targets[0])
    report = told(margin_backward(linear=True)).targets[0]
    assert red(report) == []
    assert labels(report)[label] == "right"


def test_what_cannot_pass_is_left_alone() -> None:
    """No norm is below zero, and a guard against zero is no number to pass."""
    report = check(op(unit, unit_backward))
    assert not any("what is compared" in label for label in labels(report))


# A zero, where documentation says that there may be one.


def bound(ctx, x, power):
    """x >= 0 (N, D), power (): x^power / (1 + x^power)"""
    ctx.save_for_backward(x, power)
    raised = x**power
    return raised / (1 + raised)


def bound_of_positive(ctx, x, power):
    """x > 0 (N, D), power (): the same"""
    return bound(ctx, x, power)


def bound_backward(guarded: bool):
    def backward(ctx, g):
        x, power = ctx.saved_tensors
        y = x**power / (1 + x**power)
        bell = y * (1 - y)
        logarithm = torch.where(x > 0, x, 1.0).log() if guarded else x.log()
        slope = power * x ** (power - 1) / (1 + x**power) ** 2
        return g * slope, (g * bell * logarithm).sum()

    return backward


def test_zero_is_tried_where_it_is_documented() -> None:
    label = "where an element of `x` is 0"
    select = ["GL3", "GL4"]

    def told(backward: Any, forward: Any = bound) -> TargetReport:
        return gradlint.check(op(forward, backward), seed=0, order=1, select=select).targets[0]

    found = told(bound_backward(guarded=False)).findings
    there = [(f.code, f.severity, f.input) for f in found if f.sample == label]
    assert ("GL302", "warning", "power") in there
    assert red(told(bound_backward(guarded=True))) == []
    assert label not in labels(told(bound_backward(guarded=False), bound_of_positive))


# A solver that keeps each step within bounds: beyond them there is no solution.


def solved(ctx, y):
    """The root of x + x³ = y by Newton's method, kept between -3 and 3."""
    x = torch.zeros_like(y)
    for _ in range(20):
        x = (x - (x + x**3 - y) / (1 + 3 * x * x)).clamp(-3.0, 3.0)
    ctx.save_for_backward(x)
    return x


def solved_backward(factor: float):
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return factor * g / (1 + 3 * x * x)

    return backward


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_bounds_of_a_solver_are_not_passed(factor: float) -> None:
    y = torch.linspace(-4.0, 5.0, 6, dtype=torch.float64).requires_grad_()
    select = ["GL401"]
    function = op(solved, solved_backward(factor))
    report = gradlint.check(function, [(y,)], seed=0, order=1, select=select).targets[0]
    assert [code for code, _ in red(report)][:1] == ([] if factor == 1.0 else ["GL401"])
    assert not any("both sides" in label or "compared" in label for label in labels(report))


# What is clamped to zero everywhere is dead, and hides what backward does beside it.


def overlap(ctx, a, b):
    """a, b: (N, 3); how far a product is above what it hardly reaches, at least zero"""
    reach = (a * b).sum(-1) - 6.0
    ctx.save_for_backward(a, b, reach)
    return reach.clamp(min=0) * 2.0


def overlap_backward(factor: float):
    def backward(ctx, g):
        a, b, reach = ctx.saved_tensors
        live = (2.0 * g * (reach > 0))[:, None]
        return live * b, factor * live * a

    return backward


def test_what_is_dead_is_brought_to_life() -> None:
    label = "where what is compared with 0 is above it"
    a = torch.tensor([[0.4, -1.1, 0.3], [1.2, 0.5, -0.7]], dtype=torch.float64).requires_grad_()
    given = [(a, (a.detach().flip(0) + 0.3).requires_grad_())]

    def told(factor: float) -> TargetReport:
        function = op(overlap, overlap_backward(factor))
        return gradlint.check(function, given, seed=0, order=1, select=["GL4"]).targets[0]

    assert labels(told(0.5))[label] == "wrong"
    report = told(1.0)
    assert red(report) == []
    assert labels(report)[label] == "right"

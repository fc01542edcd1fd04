"""Further samples with other values: beyond thresholds and limits, of one sign, large and small."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from gradlint.inputs import _names
from gradlint.inputs.designed import (
    ANY_SIGN,
    MOST_OPERANDS,
    SAME_SIGN,
    Designed,
    Tested,
    domain_of,
    exchanged,
    is_floating,
    is_same,
    leaf_like,
    replaced,
)
from gradlint.inputs.designed_arguments import LARGE_EPSILON
from gradlint.inputs.documentation import (
    Range,
    clauses,
    documented_ends,
    documented_range,
    documented_sign,
    prose,
)
from gradlint.inputs.domains import CONFINED, DOMAINS
from gradlint.model.op import Op
from gradlint.model.sample import Sample, SampleKind, positional_names

#: Factors of values (heuristic: exp(30·x) is far out on its flat sides, but finite).
LARGE, SMALL = 30.0, 0.03

#: Factors by which values are moved where forward compares something with a threshold and all
#: elements are on one side: far enough that sums and products pass one of the usual size
#: (heuristic).
FARTHER = (4.0, -10.0)

#: Values do not reach a limit that is more than this many times as large as the largest of them.
#: They are then made to exceed it by this factor, unless it is larger than this (heuristic: limits
#: of activations and norms are between 1 and 100).
REACHED, BEYOND_LIMIT, LARGEST_LIMIT = 2.0, 1.5, 1e3

#: Distances from a threshold, relative to its size or to one: on both sides of it, at values that
#: are all different.
NEAREST, FARTHEST = 0.1, 0.9

#: Share of their distance by which such values are shifted, each by another amount: multiples of an
#: irrational number are at no round ones (Weyl's sequence of the golden ratio).
UNEVEN, GOLDEN = 0.2, 0.5 * (math.sqrt(5.0) - 1.0)

#: The same for a single number.
HALFWAY = 0.5

#: Share of its size by which values keep clear of every threshold, of its mirror image and, where
#: they may have any sign, of zero: at −0.1 a magnitude that is compared with 0.1 is at a kink.
CLEAR = 0.02


#: Domains, in words, in which all is that lies between two of their values.
CONVEX = (*SAME_SIGN, DOMAINS["unit"], CONFINED["ball"])

#: Pairs of tensors of which one is moved to the other, and tensors of which the rows are, at most.
MOST_PAIRS = 2

#: The domain, in words, of what may be zero and not negative.
NONNEGATIVE = "nonnegative"

#: Lengths of vectors that are shorter than one: from near zero to near the edge of the ball.
SHORTEST, LONGEST = 0.05, 0.95

#: Domain, in words → the bounds that values keep where they are put on both sides of thresholds.
_BOUNDS = {
    "all reals": (-math.inf, math.inf),
    "positive": (0.0, math.inf),
    "between 0 and 1": (0.0, 1.0),
}


#: Words, kind, the domains that it is for, and the new value of a tensor; None to keep the old one.
_Change = tuple[str, SampleKind, tuple[str, ...], Callable[[torch.Tensor], torch.Tensor | None]]


def _both_signs(tensor: torch.Tensor) -> bool:
    return bool((tensor < 0).any() & (tensor > 0).any())


def _lengthened(tensor: torch.Tensor) -> torch.Tensor:
    """Vectors of the same directions, of lengths from near zero to near one."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    lengths = torch.linspace(LONGEST, SHORTEST, len(rows), dtype=torch.float64)[:, None]
    units = rows / rows.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny)
    return (units * lengths.to(units)).reshape(tensor.shape)


_CHANGES: tuple[_Change, ...] = (
    (
        "where all values are negative",
        "special",
        ANY_SIGN,
        lambda t: -t.abs() if _both_signs(t) else None,
    ),
    (
        "where all values are positive",
        "special",
        ANY_SIGN,
        lambda t: t.abs() if _both_signs(t) else None,
    ),
    (f"where values are {LARGE:g} times as large", "extreme", SAME_SIGN, lambda t: LARGE * t),
    (f"where values are {SMALL:g} times as large", "extreme", SAME_SIGN, lambda t: SMALL * t),
)


def other_values(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with one sign in each tensor that has both, with large and with small values. What
    is a logarithm by its name stays: exp(30 x) is no width or rate that anybody has."""
    yield from _changed(op, sample, _CHANGES)


def of_other_lengths(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with vectors that are shorter than one near zero and near the edge of the ball."""
    label = f"where vectors are {SHORTEST:g} to {LONGEST:g} long"
    yield from _changed(op, sample, [(label, "same", (CONFINED["ball"],), _lengthened)])


def of_one_sign(op: Op, sample: Sample) -> Sample | None:
    """``sample`` with positive numbers alone: with an option that is moved forward may take a
    logarithm or a root, which is not finite at others. None where nothing would change."""

    def positive(tensor: torch.Tensor) -> torch.Tensor | None:
        return tensor.abs() if bool((tensor < 0).any()) else None

    made = next(_changed(op, sample, [(sample.label, sample.kind, ANY_SIGN, positive)]), None)
    return None if made is None else made.sample


#: Distance from the ends of an open interval, as a share of it (heuristic: what decays by then, as
#: exp(-50 x), is still seen, and the logarithms and quantiles of it are not large).
NEAR_END = 0.02


def at_documented_ends(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with an element of each tensor at the ends that documentation includes: zero where
    it may be zero, and no less, and both ends of "[0, 1]"; and near those that it leaves out. What
    is computed of a logarithm or by a division has a limit there that a formula may miss."""
    text = prose(op.defining) if op.defining is not None else ""
    named = sample.named_tensors(op.signature)
    names = [name for name, _ in named]
    for name, tensor in named:
        if not is_floating(tensor) or tensor.numel() < 2:
            continue
        ends = documented_ends(text, name, names)
        if domain_of(sample, name) == NONNEGATIVE:
            ends |= {0.0}
        for end in sorted(ends) if domain_of(sample, name) in (*CONVEX, NONNEGATIVE) else ():
            flat = tensor.detach().reshape(-1).clone()
            flat[0] = end
            label = f"where an element of `{name}` is {end:g}"
            yield replaced(sample, tensor, flat, label, "special")
        yield from _near_open_ends(sample, name, tensor, documented_range(text, name, names))


def _near_open_ends(
    sample: Sample, name: str, tensor: torch.Tensor, known: Range | None
) -> Iterator[Designed]:
    """``sample`` with two elements near the ends of an interval that documentation leaves open:
    probabilities of a default are small, and what fades with them is seen there alone."""
    if known is None or known.low_too or known.high_too or domain_of(sample, name) not in CONVEX:
        return
    width = known.high - known.low
    if math.isfinite(width) and width > 0:
        flat = tensor.detach().reshape(-1).clone()
        flat[0], flat[1] = known.low + NEAR_END * width, known.high - NEAR_END * width
        label = f"where `{name}` is near {known.low:g} and {known.high:g}"
        yield replaced(sample, tensor, flat, label)


#: Words that say of numbers that none is below zero.
_ONE_SIGN = re.compile(
    r"(?i)positive|non-?negative|magnitude|modul|amplitude|probabilit|variance|distance|[≥>]=?\s*0"
)


def with_other_signs(op: Op, sample: Sample, signed: Sequence[torch.Tensor]) -> Iterator[Designed]:
    """``sample`` with numbers of both signs in an input of which all have one, where forward takes
    absolute values or signs of it, which tell of both, and documentation does not ask for one.

    Args:
        signed: tensors of which forward takes these.
    """
    text = prose(op.defining) if op.defining is not None else ""
    named = sample.named_tensors(op.signature)
    for name, tensor in named:
        value = tensor.detach()
        if not is_floating(tensor) or tensor.numel() < 2 or not bool((value > 0).all()):
            continue
        known = any(is_same(tensor, seen) for seen in signed)
        names = [other for other, _ in named]
        said = any(_ONE_SIGN.search(clause) for clause in clauses(text, name, names))
        if known and not (said or documented_sign(text, name, names)):
            signs = 1.0 - 2.0 * (torch.arange(tensor.numel()) % 2)
            flat = value.reshape(-1) * signs.to(value)
            label = f"where `{name}` has both signs"
            yield replaced(sample, tensor, flat, label, "special")


def of_both_signs(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with numbers of both signs where they have one for no reason of their own (see
    :class:`~gradlint.model.sample.Sample`): in all such inputs, then in each alone. Where they lie
    between 0 and 1, half of them go beyond."""
    for name, tensor in sample.named_tensors(op.signature):
        unit = name in sample.narrowed and domain_of(sample, name) == DOMAINS["unit"]
        if unit and is_floating(tensor) and tensor.numel() > 1:
            flat = tensor.detach().reshape(-1).clone()
            flat[::2] += 1.0
            yield replaced(sample, tensor, flat, f"where `{name}` goes beyond 1", "special")
    exchange: dict[str, tuple[int, torch.Tensor]] = {}
    for name, tensor in sample.named_tensors(op.signature):
        if name in sample.narrowed and is_floating(tensor) and tensor.numel() > 1:
            signs = 1.0 - 2.0 * (torch.arange(tensor.numel()) % 2)
            changed = tensor.detach() * signs.reshape(tensor.shape).to(tensor)
            exchange[name] = id(tensor), leaf_like(changed, tensor)
    if exchange:
        label = "where values have both signs"
        yield Designed(exchanged(sample, dict(exchange.values()), label, "special"), {})
    for name, pair in exchange.items() if len(exchange) > 1 else ():
        label = f"where `{name}` has both signs"
        yield Designed(exchanged(sample, dict([pair]), label, "special"), {})


def beyond(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with larger values, so that what forward computes of them passes thresholds.
    Single numbers, which are positive, stay so: a negative rate or duration is hardly meant."""
    words = "where values are {:g} times as large"

    def times(factor: float, tensor: torch.Tensor) -> torch.Tensor:
        return (factor if tensor.dim() else abs(factor)) * tensor

    yield from _changed(
        op, sample, [(words.format(k), "same", ANY_SIGN, partial(times, k)) for k in FARTHER]
    )


def farther_alone(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with larger values in one tensor, so that it passes others that it is compared
    with: times beyond the last knot, points beyond the end of a segment. What scales with all
    inputs together never does."""
    domains = (*SAME_SIGN, DOMAINS["ordered"])
    named = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if is_floating(tensor) and tensor.requires_grad and domain_of(sample, name) in domains
    ]
    for name, tensor in named[:MOST_OPERANDS] if len(list(sample.named_tensors(None))) > 1 else ():
        larger = FARTHER[0] * tensor.detach()
        label = f"where `{name}` is {FARTHER[0]:g} times as large"
        yield replaced(sample, tensor, larger.reshape(-1), label)


def up_to_limits(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with values that reach each limit which the op holds and never compares with: the
    cap of ``cap * tanh(x / cap)``."""
    largest = max(
        (
            float(tensor.detach().abs().max())
            for name, tensor in sample.named_tensors(op.signature)
            if is_floating(tensor) and tensor.numel() and domain_of(sample, name) in SAME_SIGN
        ),
        default=0.0,
    )
    for name, limit in _limits(op, sample):
        if 0.0 < REACHED * largest < limit <= LARGEST_LIMIT:
            factor = BEYOND_LIMIT * limit / largest
            label = f"where values reach {name}={limit:g}"
            larger: _Change = (label, "same", SAME_SIGN, partial(torch.mul, other=factor))
            yield from _changed(op, sample, [larger])


def _limits(op: Op, sample: Sample) -> Iterator[tuple[str, float]]:
    """Numbers among the arguments, the attributes and the buffers whose names say that they bound
    values."""
    names = positional_names(op.signature, len(sample.args)) if op.signature else []
    held: dict[str, Any] = {
        name: parameter.default
        for name, parameter in (op.signature.parameters if op.signature else {}).items()
    }
    held |= {**dict(zip(names, sample.args, strict=True)), **sample.kwargs} if names else {}
    if op.module is not None:
        held |= {**vars(op.module), **dict(op.module.named_buffers())}
    for name, value in held.items():
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.requires_grad:
            value = value.item()
        if type(value) in (int, float) and _names.is_limit(name.rpartition(".")[2]):
            yield name, abs(float(value))


def nearer(op: Op, sample: Sample, share: float) -> Iterator[Designed]:
    """``sample`` with values ``share`` times as large, so that what forward computes of them stays
    below a threshold that it passed: a norm below its epsilon."""
    label = _with_moved(sample, f"where values are {share:.2g} times as large")
    smaller: _Change = (label, "same", SAME_SIGN, partial(torch.mul, other=share))
    yield from _changed(op, sample, [smaller])


def approaches(op: Op, sample: Sample) -> Iterator[Callable[[float], Designed]]:
    """Functions of a share that make ``sample`` with a tensor nearer to another one of its kind, or
    with the rows of a tensor nearer to its first one, at that share of their distance."""
    named = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if is_floating(tensor) and tensor.numel() > 1 and domain_of(sample, name) in CONVEX
    ]
    pairs = [
        (first, second)
        for first, second in itertools.combinations(named, 2)
        if first[1].shape == second[1].shape
        and domain_of(sample, first[0]) == domain_of(sample, second[0])
    ]
    for (name, first), (other, second) in pairs[:MOST_PAIRS]:
        label = f"where `{other}` is near `{name}`"
        yield partial(_approached, sample, first.detach(), second, label)
    for name, tensor in named[:MOST_PAIRS]:
        if tensor.dim() > 1 and len(tensor) > 1:
            label = f"where rows of `{name}` are near one another"
            yield partial(_approached, sample, tensor.detach()[:1], tensor, label)


def _approached(
    sample: Sample, goal: torch.Tensor, tensor: torch.Tensor, label: str, share: float
) -> Designed:
    nearer = torch.lerp(goal.expand_as(tensor), tensor.detach(), share)
    return replaced(sample, tensor, nearer.reshape(-1), _with_moved(sample, label))


def _with_moved(sample: Sample, label: str) -> str:
    """``label``, behind that of ``sample`` if it says which arguments were moved."""
    return f"{sample.label}, {label}" if sample.label.startswith("with ") else label


def _changed(op: Op, sample: Sample, changes: Sequence[_Change]) -> Iterator[Designed]:
    for label, kind, domains, change in changes:
        exchange = {
            id(tensor): leaf_like(changed, tensor)
            for name, tensor in sample.named_tensors(op.signature)
            if is_floating(tensor) and domain_of(sample, name) in domains
            if not (kind == "extreme" and _names.is_logarithm(name))
            if (changed := change(tensor.detach())) is not None
        }
        if exchange:
            yield Designed(exchanged(sample, exchange, label, kind), {})


#: The smallest threshold that data may lie around (heuristic: smaller ones, as the smallest normal
#: numbers, keep a divisor from zero).
_LEAST_THRESHOLD = 1e-30


def is_tiny(threshold: float) -> bool:
    """Whether a threshold is not zero, and no data lie around it."""
    return 0.0 < abs(threshold) < _LEAST_THRESHOLD


def around(op: Op, sample: Sample, thresholds: Sequence[float]) -> Iterator[Designed]:
    """``sample`` with elements on both sides of all ``thresholds``, and beyond them."""
    exchange, shown = {}, set()
    for name, tensor in sample.named_tensors(op.signature):
        low, high = _BOUNDS.get(domain_of(sample, name), (0.0, 0.0))
        marks = sorted({mark for mark in thresholds if low < mark < high and not is_tiny(mark)})
        if is_floating(tensor) and tensor.numel() > 1 and marks:
            exchange[id(tensor)] = leaf_like(_scattered(tensor.detach(), marks, low, high), tensor)
            shown |= set(marks)
    if exchange:
        label = f"where values are on both sides of {', '.join(f'{m:g}' for m in sorted(shown))}"
        yield Designed(exchanged(sample, exchange, _with_moved(sample, label), "same"), {})


def beyond_own_bounds(op: Op, sample: Sample, bounded: Sequence[Tested]) -> Iterator[Designed]:
    """``sample`` with elements on both sides of a number outside of their domain by which forward
    itself bounds them: a density behind ``relu``, the logarithm of a variance that is kept above
    -7. That they have one sign is a guess then.

    Args:
        bounded: tensors that are bounded, each with the number.
    """
    for name, tensor in sample.named_tensors(op.signature):
        low, high = _BOUNDS.get(domain_of(sample, name), (-math.inf, math.inf))
        outside = {
            mark for seen, mark in bounded if not low < mark < high and is_same(tensor, seen)
        }
        marks = sorted(outside)
        if marks and is_floating(tensor) and tensor.numel() == 1:
            yield _opposite(sample, name, tensor, marks, -math.inf, math.inf)
        elif marks and is_floating(tensor):
            flat = _scattered(tensor.detach(), marks, -math.inf, math.inf)
            words = ", ".join(f"{mark:g}" for mark in marks)
            yield replaced(sample, tensor, flat, f"where `{name}` is on both sides of {words}")


def on_both_sides(value: torch.Tensor, marks: Sequence[float]) -> torch.Tensor:
    """Numbers below, between and above ``marks`` in place of ``value``; of one number, one on the
    other side of the nearest of them."""
    if value.numel() > 1:
        return _scattered(value.detach(), marks, -math.inf, math.inf)
    return torch.full_like(value.detach(), _across(float(value), marks, -math.inf, math.inf)[0])


def on_the_other_side(op: Op, sample: Sample, compared: Sequence[Tested]) -> Iterator[Designed]:
    """``sample`` with a single number on the other side of the nearest number that forward itself
    compares it with.

    Args:
        compared: tensors that are compared, each with the number.
    """
    for name, tensor in sample.named_tensors(op.signature):
        low, high = _BOUNDS.get(domain_of(sample, name), (0.0, 0.0))
        if is_floating(tensor) and tensor.numel() == 1:
            marks = [mark for seen, mark in compared if low < mark < high and is_same(tensor, seen)]
            if marks:
                yield _opposite(sample, name, tensor, marks, low, high)


def _opposite(
    sample: Sample, name: str, tensor: torch.Tensor, marks: Sequence[float], low: float, high: float
) -> Designed:
    """``sample`` with a single number between ``low`` and ``high`` on the other side of the nearest
    of ``marks``."""
    now = float(tensor)
    other, mark = _across(now, marks, low, high)
    side = "above" if now < mark else "below"
    flat = torch.full((1,), other, dtype=torch.float64)
    return replaced(sample, tensor, flat, f"where `{name}` is {side} {mark:g}")


def _across(now: float, marks: Sequence[float], low: float, high: float) -> tuple[float, float]:
    """A number between ``low`` and ``high`` on the other side of the nearest of ``marks``, and that
    mark."""
    mark = min(marks, key=lambda each: abs(each - now))
    size = max(abs(mark), 1.0) if math.isinf(low) else mark - low
    room = size if math.isinf(high) else high - mark
    return (mark + HALFWAY * room if now < mark else mark - HALFWAY * size), mark


def _scattered(
    value: torch.Tensor, marks: Sequence[float], low: float, high: float
) -> torch.Tensor:
    """Values between ``low`` and ``high`` that are below, between and above ``marks``, in an order
    like that of ``value``, and not so near to a mark, or to its mirror image, that they are at a
    kink, nor at a round number, where one of another tensor may be. Where a value may have any
    sign, none is nearer to zero than a mark that is no larger than an epsilon: whether one would be
    depended on how many there are."""
    count = value.numel()
    steps = torch.arange(count, dtype=torch.float64)
    share = (steps + 0.5 + UNEVEN * ((GOLDEN * (steps + 1.0)).frac() - 0.5)) / count
    share = NEAREST + (FARTHEST - NEAREST) * share
    mark = torch.tensor(marks, dtype=torch.float64)[torch.arange(count) // 2 % len(marks)]
    size = mark.abs().clamp(min=1.0) if math.isinf(low) else mark - low
    above = size if math.isinf(high) else high - mark
    flat = mark + torch.where(torch.arange(count) % 2 == 0, above, -size) * share
    if math.isinf(low):
        guarded = (mark.abs() <= LARGE_EPSILON) & (flat.abs() <= mark.abs())
        flat = torch.where(guarded, flat - 2.0 * mark.abs(), flat)
        flat = torch.where(flat.abs() < CLEAR**2 * size, CLEAR * size, flat)
    for each in marks:
        near = (flat.abs() - abs(each)).abs() < CLEAR * abs(each)
        flat = torch.where(near, flat * (1.0 + (2.0 if math.isinf(high) else -2.0) * CLEAR), flat)
    order = value.reshape(-1).argsort().argsort()
    return flat[order].reshape(value.shape).to(value.dtype)

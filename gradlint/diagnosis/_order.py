"""Faults of order: the gradient is right except for the order of its axes or slices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from gradlint.diagnosis._hypothesis import Hypothesis
from gradlint.diagnosis.evidence import EXPLAINED, Evidence
from gradlint.numerics.products import widened

#: With more axes than this, only exchanges of two axes are tried.
ALL_ORDERS = 4

#: A shift may be at most one part in so many of its axis: what agrees must be the greater part
#: (heuristic).
MOST_SHIFTED = 3

#: If every element was measured, permutations of the slices are looked for along axes of at most
#: this many slices.
MOST_SLICES = 64


def reordered_axes(shape: Sequence[int], name: str) -> Iterator[Hypothesis]:
    """g with its axes permuted, or with its elements read in that order.

    If T is right, backward may have returned T.permute(p).reshape(shape of T), or
    T.reshape(permuted shape).permute(inverse of p).
    """
    rank = len(shape)
    if rank < 2:
        return
    if rank <= ALL_ORDERS:
        orders: list[tuple[int, ...]] = list(itertools.permutations(range(rank)))
    else:
        orders = [_exchanged(rank, a, b) for a, b in itertools.combinations(range(rank), 2)]
    orders.sort(key=lambda order: (_moved(order), order != _exchanged(rank, rank - 2, rank - 1)))
    probe = torch.arange(math.prod(shape)).reshape(tuple(shape))
    known = [probe]
    for order in orders:
        inverse = tuple(sorted(range(rank), key=lambda place: order[place]))
        sizes = tuple(shape[axis] for axis in order)
        readings: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
            partial(_reread, sizes, inverse),
            partial(_rewritten, order, tuple(shape)),
        )
        for read in readings:
            tried = read(probe)
            if tried.shape != probe.shape or any(torch.equal(tried, other) for other in known):
                continue
            known.append(tried)
            yield _reordered(order, read, name)


def _reordered(
    order: tuple[int, ...], read: Callable[[torch.Tensor], torch.Tensor], name: str
) -> Hypothesis:
    rank = len(order)
    moved = [axis for axis in range(rank) if order[axis] != axis]
    if len(moved) == 2:
        last = moved == [rank - 2, rank - 1]
        how = ".mT" if last else f".transpose({moved[0]}, {moved[1]})"
        return Hypothesis(
            "transposed",
            f"taken as {how} it agrees",
            f"return ({{expression}}){how} for `{name}`",
            lambda item: read(item.own),
        )
    axes = ", ".join(str(axis) for axis in order)
    return Hypothesis(
        "permuted-axis",
        f"with its axes in the order ({axes}) it agrees",
        f"return ({{expression}}).permute({axes}) for `{name}`",
        lambda item: read(item.own),
    )


def flipped(shape: Sequence[int], name: str) -> Iterator[Hypothesis]:
    """g flipped along some axes."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    sets = [
        chosen for length in (1, 2, len(axes)) for chosen in itertools.combinations(axes, length)
    ]
    for chosen in dict.fromkeys(sets):
        if not chosen:
            continue
        words = f"axis {chosen[0]}" if len(chosen) == 1 else f"axes {list(chosen)}"
        inside = ", ".join(map(str, chosen))
        yield Hypothesis(
            "flipped-axis",
            f"read from last to first along {words} it agrees",
            f"return ({{expression}}).flip({inside}) for `{name}`",
            partial(_flip, chosen),
        )


def rolled(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """g shifted cyclically along an axis, by the shifts that agree with the slope of ``first``.

    Σᵢ g[i − k]·u[i] for all k at once is a cyclic cross-correlation (by FFT).
    """
    own = first.own
    for axis, size in enumerate(own.shape):
        shifts: Sequence[int] = range(1, size)
        if size > 2 and first.move is not None and own.numel() > MOST_SLICES**2:
            spectrum = torch.fft.fft(widened(own), dim=axis).conj()
            crossed = torch.fft.ifft(spectrum * torch.fft.fft(first.move, dim=axis), dim=axis)
            sums = crossed.real.movedim(axis, 0).reshape(size, -1).sum(dim=1)
            allowed = max(2.0 * first.slope_bar, EXPLAINED * float(sums.abs().max()))
            near = (sums - first.slope).abs() <= allowed
            shifts = [shift for shift in torch.nonzero(near).flatten().tolist() if shift]
            if len(shifts) > MOST_SLICES:
                continue  # too many shifts agree with this slope
        elif size > MOST_SLICES**2:
            continue
        for shift in shifts if size > 2 else ():
            shown = shift if shift <= size // 2 else shift - size
            yield Hypothesis(
                "permuted-axis",
                f"rolled by {shown} along axis {axis} it agrees",
                f"return ({{expression}}).roll({shown}, {axis}) for `{name}`",
                partial(_roll, shift, axis),
            )


def shifted(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """g shifted along an axis, as where padding was cut off at the wrong end: what was shifted out
    is lost, so that the slices at one end cannot be told."""
    if not first.complete or not bool(first.good.all()):
        return
    for axis, size in enumerate(first.own.shape):
        for shift in [s for k in range(1, size // MOST_SHIFTED + 1) for s in (k, -k)]:
            yield Hypothesis(
                "shifted",
                f"moved by {shift:+d} along axis {axis} it agrees, as far as it reaches,",
                f"look at where backward cuts or pads along axis {axis}: the gradient of `{name}` "
                f"is {abs(shift)} too far to the {'left' if shift > 0 else 'right'}",
                partial(_shift, shift, axis),
            )


def _shift(shift: int, axis: int, item: Evidence) -> torch.Tensor | None:
    if not item.complete:
        return None
    size = item.own.shape[axis]
    found = item.measured.reshape(item.own.shape).to(widened(item.own).device).clone()
    start = max(shift, 0)
    length = size - abs(shift)
    found.narrow(axis, start, length).copy_(widened(item.own).narrow(axis, start - shift, length))
    return found


def rearranged(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """g with the slices of an axis in the order that comes nearest to the measured gradient."""
    own = first.own
    if not first.complete or not bool(first.good.all()):
        return
    true = first.measured.reshape(tuple(own.shape))
    for axis, size in enumerate(own.shape):
        if not 2 < size <= MOST_SLICES or own.numel() == size:
            continue  # single numbers can always be brought into any order
        have = widened(own).movedim(axis, 0).reshape(size, -1).cpu()
        want = true.movedim(axis, 0).reshape(size, -1)
        distance = (want[:, None, :] - have[None, :, :]).abs().amax(dim=2)
        order = distance.argmin(dim=1)
        listed = order.tolist()
        if len(set(listed)) < size or _is_cyclic(listed):
            continue
        yield Hypothesis(
            "permuted-axis",
            f"with the slices of axis {axis} in the order ({_brief(listed)}) it agrees",
            f"put the gradient of `{name}` back into the order of axis {axis}: index it with the "
            "inverse of the permutation that forward applies",
            partial(_select, order, axis),
        )


def mirrored(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """What backward returns for a mirrored grad_output, mirrored back. This finds cumulative sums
    that run the wrong way or along the wrong axis; it calls backward for each candidate."""
    shape = tuple(first.own.shape)
    if len(first.cotangents) != 1 or tuple(first.cotangents[0].shape) != shape:
        return
    for axis, size in enumerate(shape):
        if size > 1:
            yield Hypothesis(
                "flipped-axis",
                f"computed from the other end of axis {axis} it agrees",
                f"run the other way along axis {axis} for `{name}`: flip grad_output, and flip the "
                "result back",
                partial(_both, partial(_flipped, axis)),
            )
    for a, b in itertools.combinations(range(len(shape)), 2):
        if shape[a] == shape[b] > 1:
            yield Hypothesis(
                "wrong-axis",
                f"computed with axes {a} and {b} exchanged it agrees",
                f"work along the axis of forward for `{name}`: {a} and {b} are confused",
                partial(_both, partial(_exchange, a, b)),
            )


def _both(mirror: Callable[[torch.Tensor], torch.Tensor], item: Evidence) -> torch.Tensor | None:
    if item.pull is None:
        return None
    pulled = item.pull([mirror(v).contiguous() for v in item.cotangents])
    return None if pulled is None else mirror(pulled)


def _flipped(axis: int, g: torch.Tensor) -> torch.Tensor:
    return g.flip(axis)


def _exchange(a: int, b: int, g: torch.Tensor) -> torch.Tensor:
    return g.transpose(a, b)


def _flip(axes: tuple[int, ...], item: Evidence) -> torch.Tensor:
    return item.own.flip(axes)


def _roll(shift: int, axis: int, item: Evidence) -> torch.Tensor:
    return item.own.roll(shift, axis)


def _select(order: torch.Tensor, axis: int, item: Evidence) -> torch.Tensor:
    return item.own.index_select(axis, order.to(item.own.device))


def _reread(sizes: tuple[int, ...], order: tuple[int, ...], g: torch.Tensor) -> torch.Tensor:
    return g.reshape(sizes).permute(order)


def _rewritten(order: tuple[int, ...], shape: tuple[int, ...], g: torch.Tensor) -> torch.Tensor:
    return g.permute(order).reshape(shape)


def _exchanged(rank: int, a: int, b: int) -> tuple[int, ...]:
    order = list(range(rank))
    order[a], order[b] = b, a
    return tuple(order)


def _moved(order: tuple[int, ...]) -> int:
    return sum(place != axis for place, axis in enumerate(order))


def _is_cyclic(order: Sequence[int]) -> bool:
    size = len(order)
    steps = {(b - a) % size for a, b in itertools.pairwise(order)}
    return steps in ({1}, {size - 1})


def _brief(order: Sequence[int]) -> str:
    shown = ", ".join(map(str, order[:6]))
    return shown + (", …" if len(order) > 6 else "")

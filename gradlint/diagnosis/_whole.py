"""Faults of a whole gradient: it has the wrong size, order or owner, and is right otherwise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from gradlint.diagnosis._evidence import EXPLAINED, Evidence, at, fit_of
from gradlint.diagnosis._factors import meaning, recognised
from gradlint.diagnosis._hypothesis import Hypothesis
from gradlint.numerics._products import real_dot, widened

#: Beyond this many axes only pairs of them are exchanged.
ALL_ORDERS = 4

#: An axis of at most this many slices is searched for an order of its slices, where every element
#: was measured.
MOST_SLICES = 64

#: Beyond this relative misfit of a factor (float32), only the simplest readings of it are given.
ROUGH = 1e-3


def sign(name: str) -> Hypothesis:
    """−g."""
    return Hypothesis(
        "sign",
        "taken with the opposite sign it agrees",
        f"return -({{expression}}) for `{name}`",
        lambda item: -item.own,
    )


def scaled(evidence: Sequence[Evidence], name: str) -> Hypothesis | None:
    """c·g, with c from least squares."""
    numerator = denominator = 0.0
    for item in evidence:
        good = item.good
        if bool(good.any()):
            own, measured = at(item, item.own)[good], item.measured[good]
            numerator += real_dot(own, measured)
            denominator += real_dot(own, own)
    if denominator == 0.0:
        for item in evidence:
            if item.move is not None:
                claimed = real_dot(item.own, item.move)
                numerator += claimed * item.slope
                denominator += claimed**2
    if denominator == 0.0 or numerator == 0.0:
        return None
    factor = numerator / denominator
    if abs(factor + 1.0) <= EXPLAINED:
        return None  # `sign` says the same
    fit = fit_of(evidence, [item.own * factor for item in evidence])
    if fit is None:
        return None
    slack = min(ROUGH, max(EXPLAINED, 3.0 * fit.misfit))
    shown = recognised(factor, evidence, slack=slack)
    told = meaning(factor, evidence, slack=slack)
    return Hypothesis(
        "scaled",
        f"the returned gradient times {shown} agrees",
        f"multiply the gradient of `{name}` by {shown}",
        lambda item: item.own * factor,
        f" ({told})" if told else "",
    )


def reordered_axes(shape: Sequence[int], name: str) -> Iterator[Hypothesis]:
    """g with its axes in another order, or its elements read as if they were.

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
        for read in (
            partial(_reread, sizes, inverse),
            partial(_rewritten, order, tuple(shape)),
        ):
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
    """g with some axes from last to first."""
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
    """g shifted cyclically along an axis; shifts that the slope of ``first`` admits.

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
                continue  # this slope tells nothing
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


def rearranged(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """g with the slices of an axis in the order in which they come nearest to what was measured."""
    own = first.own
    if not first.complete or not bool(first.good.all()):
        return
    true = first.measured.reshape(tuple(own.shape))
    for axis, size in enumerate(own.shape):
        if not 2 < size <= MOST_SLICES or own.numel() == size:
            continue  # the order of single numbers can always be had
        have = widened(own).movedim(axis, 0).reshape(size, -1).cpu()
        want = true.movedim(axis, 0).reshape(size, -1)
        distance = (want[:, None, :] - have[None, :, :]).abs().amax(dim=2)
        order = distance.argmin(dim=1)
        listed = order.tolist()
        if len(set(listed)) < size or _is_cyclic(listed):
            continue
        yield Hypothesis(
            "permuted-axis",
            f"with the slices of axis {axis} in another order ({_brief(listed)}) it agrees",
            f"put the gradient of `{name}` back into the order of axis {axis}: index it with the "
            "inverse of the permutation that forward applies",
            partial(_select, order, axis),
        )


def conjugate(name: str) -> Iterator[Hypothesis]:
    """The conjugate of all that was returned, or of the factor beside grad_output."""
    help_text = (
        f"return grad_output times the conjugate of the derivative for `{name}`: PyTorch's "
        "gradients are conjugate Wirtinger derivatives, so `{expression}` lacks a .conj()"
    )
    text = "with its complex conjugate it agrees"
    yield Hypothesis("conjugate", text, help_text, lambda item: item.own.conj())
    yield Hypothesis(
        "conjugate", "with the conjugate of its factor it agrees", help_text, _factor_conjugated
    )


def _factor_conjugated(item: Evidence) -> torch.Tensor | None:
    """conj(g(conj(v))): of v·d, v·conj(d). Of elementwise functions backward need not be asked."""
    own = item.own
    for v in item.cotangents:
        if v.is_complex() and v.shape == own.shape and bool((v != 0).all()):
            found = v * (own / v).conj()
            if fit_of([item], [found]) is not None:
                return found
    if item.pull is None or not any(v.is_complex() for v in item.cotangents):
        return None
    pulled = item.pull([v.conj().resolve_conj() for v in item.cotangents])
    return None if pulled is None else pulled.conj()


def swapped(first: Evidence, name: str) -> Iterator[Hypothesis]:
    """The gradient of another input of the same shape."""
    for other, other_name in enumerate(first.names):
        if other == first.index or first.claimed[other].shape != first.own.shape:
            continue
        yield Hypothesis(
            "swapped",
            f"what is returned for `{other_name}` is the gradient of `{name}`",
            f"return the gradients in the order of forward's arguments: exchange those of "
            f"`{name}` and `{other_name}`",
            partial(_claimed, other),
        )


def _flip(axes: tuple[int, ...], item: Evidence) -> torch.Tensor:
    return item.own.flip(axes)


def _roll(shift: int, axis: int, item: Evidence) -> torch.Tensor:
    return item.own.roll(shift, axis)


def _select(order: torch.Tensor, axis: int, item: Evidence) -> torch.Tensor:
    return item.own.index_select(axis, order.to(item.own.device))


def _claimed(other: int, item: Evidence) -> torch.Tensor:
    return item.claimed[other]


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

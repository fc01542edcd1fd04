"""Regular sets of elements, which can be described in words: rows, diagonals, borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

#: Periods tried along an axis.
PERIODS = (2, 3, 4, 5, 6, 7, 8, 10, 16, 32)

#: The indices chosen along one axis; None for all of them.
Pick = range | tuple[int, ...] | None

PRODUCT, DIAGONAL, UPPER, LOWER, BORDER = "product", "diagonal", "upper", "lower", "border"


@dataclass(frozen=True)
class Pattern:
    """A regular set of elements of a tensor.

    Args:
        shape: shape of the tensor.
        picks: one per axis; the set is their product.
        kind: :data:`PRODUCT`, or a further restriction over ``axes``: :data:`DIAGONAL` (index of
            the second minus index of the first is ``offset``), :data:`UPPER` (positive),
            :data:`LOWER` (negative), :data:`BORDER` (first or last along any of ``axes``).
        axes: see ``kind``.
        offset: offset of a diagonal.
    """

    shape: tuple[int, ...]
    picks: tuple[Pick, ...]
    kind: str = PRODUCT
    axes: tuple[int, ...] = ()
    offset: int = 0

    def mask(self) -> torch.Tensor:
        """True for the elements of the set; boolean, on the CPU."""
        found = torch.ones(self.shape, dtype=torch.bool)
        for axis, pick in enumerate(self.picks):
            if pick is not None:
                chosen = torch.zeros(self.shape[axis], dtype=torch.bool)
                chosen[list(pick)] = True
                found &= along_axis(chosen, axis, len(self.shape))
        if self.kind == BORDER:
            inside = torch.ones(self.shape, dtype=torch.bool)
            for axis in self.axes:
                inner = torch.ones(self.shape[axis], dtype=torch.bool)
                inner[0] = inner[-1] = False
                inside &= along_axis(inner, axis, len(self.shape))
            found &= ~inside
        elif self.kind != PRODUCT:
            distance = offsets(self.shape, *self.axes)
            if self.kind == DIAGONAL:
                found &= distance == self.offset
            else:
                found &= distance > 0 if self.kind == UPPER else distance < 0
        return found


def along_axis(values: torch.Tensor, axis: int, rank: int) -> torch.Tensor:
    """A vector reshaped to ``rank`` axes, so that it varies along ``axis`` alone."""
    return values.reshape([-1 if place == axis else 1 for place in range(rank)])


def offsets(shape: Sequence[int], first: int, second: int) -> torch.Tensor:
    """Index along axis ``second`` minus index along ``first``, broadcastable to ``shape``."""
    rank = len(shape)
    return along_axis(torch.arange(shape[second]), second, rank) - along_axis(
        torch.arange(shape[first]), first, rank
    )


def pick_of(indices: Sequence[int], size: int) -> Pick | str:
    """The indices along an axis of ``size`` as a :data:`Pick`; "" if they are irregular.

    Regular are: all, one, both ends, an interval, and every k-th from an offset below k on.
    """
    chosen = sorted(indices)
    if len(chosen) == size:
        return None
    if len(chosen) == 1:
        return range(chosen[0], chosen[0] + 1)
    if chosen == [0, size - 1] and size > 2:
        return (0, size - 1)
    step = chosen[1] - chosen[0]
    found = range(chosen[0], chosen[-1] + 1, step)
    if list(found) != chosen:
        return ""
    if step > 1 and (chosen[0] >= step or chosen[-1] + step < size):
        return ""
    return found


def pattern_of(wrong: torch.Tensor, neutral: torch.Tensor) -> Pattern | None:
    """The smallest regular set that contains all ``wrong`` elements and otherwise only ``neutral``
    ones, which are right under any formula (zeros); None if there is no such set.

    Args:
        wrong, neutral: boolean, in the shape of the tensor.
    """
    shape = tuple(wrong.shape)
    rank = len(shape)
    positions = torch.nonzero(wrong)
    if not len(positions):
        return None
    picks: list[Pick] = []
    for axis in range(rank):
        seen = wrong.movedim(axis, 0).reshape(wrong.shape[axis], -1).any(dim=1)
        blank = neutral.movedim(axis, 0).reshape(neutral.shape[axis], -1).all(dim=1) & ~seen
        pick = pick_of(torch.nonzero(seen).flatten().tolist(), shape[axis])
        if pick == "" and bool(blank.any()):
            pick = pick_of(torch.nonzero(seen | blank).flatten().tolist(), shape[axis])
        picks.append(None if isinstance(pick, str) else pick)
    tried = [Pattern(shape, tuple(picks))]
    free = [axis for axis in range(rank) if _nearly_all(picks[axis], shape[axis])]
    pairs = [(a, b) for a in free for b in free if a < b]
    for a, b in pairs:
        # A triangle leaves out a row and a column, an offset diagonal some of each.
        rest = tuple(None if axis in (a, b) else pick for axis, pick in enumerate(picks))
        distance = (positions[:, b] - positions[:, a]).unique()
        if len(distance) == 1:
            tried.append(Pattern(shape, rest, DIAGONAL, (a, b), int(distance)))
        tried += [Pattern(shape, rest, kind, (a, b)) for kind in (UPPER, LOWER)]
    tried += [Pattern(shape, tuple(picks), BORDER, (a, b)) for a, b in pairs[-1:]]
    for pattern in tried:
        mask = pattern.mask()
        if bool((wrong & ~mask).any()) or bool((mask & ~wrong & ~neutral).any()):
            continue
        return pattern
    return None


def _nearly_all(pick: Pick, size: int) -> bool:
    if pick is None:
        return size > 1
    return isinstance(pick, range) and pick.step == 1 and len(pick) > 1

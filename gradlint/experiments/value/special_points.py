"""Gradients at special points, compared with the slopes of the function on either side.

Per output j, with D⁺ⱼ and D⁻ⱼ the slopes of f_j along u from above and from below, a gradient g
under the cotangent v is right

- at a smooth point (D⁺ = D⁻) when ⟨g, u⟩ = Σⱼ vⱼ·Dⱼ;
- at a kink of single elements when ⟨g, u⟩ lies in Σⱼ [vⱼ·D⁻ⱼ, vⱼ·D⁺ⱼ], the sum of the intervals.

Where whole tensors are special, kinks inside of f may cancel in ways that no interval shows: only
smooth points are judged there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradlint.experiments.finite.extremes import KINDS, ExtremePoint
from gradlint.experiments.finite.special_values import SpecialElement
from gradlint.experiments.subject import Subject
from gradlint.experiments.value.measured_function import MeasuredFunction, is_steady
from gradlint.experiments.value.one_sided_slopes import (
    STEADY,
    VALUES_DIRECTION,
    OneSidedSlopes,
    SlopesAtPoint,
    WrongAtPoint,
    is_stable,
)
from gradlint.numerics.products import all_finite

#: A suspect is measured again at a step this many times wider, where the slopes of jumps and roots
#: differ.
WIDER = 2.0**5

#: Elements that are measured one by one for the evidence, in each input that is wrong.
SHOWN = 6

#: Where equal elements are moved together, in the words of a message.
EQUAL = "where equal elements move together"

#: Special elements are right together when the gradient predicts their change this closely: ten
#: times closer than for one element, since each is only a part of the sum (heuristic).
TOGETHER_TOLERATED = 1e-4

#: Special elements that are measured, at most, over all inputs.
MOST_PLACES = 6


class SpecialPoints:
    """The special points of one subject."""

    def __init__(self, subject: Subject, inputs: Sequence[int]) -> None:
        self._subject, self._inputs = subject, inputs
        self._measured = MeasuredFunction(subject, inputs)
        self._step, self._tolerated = self._measured.step, self._measured.tolerated
        self.judged: list[str] = []

    @property
    def measurable(self) -> bool:
        """Whether the function is computed precisely enough to measure slopes."""
        return self._step > 0.0

    def wrong(self, extreme: ExtremePoint) -> Iterator[WrongAtPoint]:
        """The inputs whose gradient is wrong at ``extreme``, each once; of single elements, all."""
        at = self._measured.at(extreme)
        if at is None:
            return
        usable = [
            k
            for k in self._inputs
            if at.values[k].is_floating_point()
            and at.values[k].layout == torch.strided
            and all_finite(at.gradients[k])
        ]
        judge = self._single if extreme.name == "single" else self._whole
        found = list(judge(extreme, at, usable))
        # Where the op's own gradient in float64 is right at the same values, the formula is, too:
        # the terms of the other cancel, and what is left is rounding. Single elements lie on a
        # bound that may be another number in float64.
        whole = found and extreme.name != "single"
        exact = self._measured.in_float64(extreme, at) if whole else None
        if exact is not None:
            wrong = {item.position for item in judge(extreme, exact, usable)}
            found = [item for item in found if item.position in wrong]
        yield from found

    def _single(
        self, extreme: ExtremePoint, at: SlopesAtPoint, usable: Sequence[int]
    ) -> Iterator[WrongAtPoint]:
        places = extreme.places[:MOST_PLACES]
        if self._right_together(at, [place for place in places if place.position in usable]):
            self.judged.append(extreme.name)
            return
        for place in places:
            if place.position not in usable:
                continue
            if self._measured.project[place.position] is not None:
                continue  # elements of a symmetric matrix do not move alone
            flat = at.gradients[place.position].reshape(-1)
            # Elements that are equal are moved alone, where the gradient may be anything between
            # the sides, and together, where they stay equal and the function is often smooth.
            for twins in ((),) if place.twin is None else ((), (place.twin,)):
                found = at.element(place.position, place.element, self._step, *twins)
                if found is None:
                    continue
                self.judged.append(extreme.name)
                claimed = float(flat[[place.element, *twins]].sum())
                if not found.excludes(claimed, self._measured.slack(found, claimed)):
                    continue
                if self._right_at_neighbour(at, place, twins, claimed):
                    continue
                again = at.element(place.position, place.element, WIDER * self._step, *twins)
                if is_steady(found, again):
                    where = EQUAL if twins else f"where it {place.words}"
                    joint = claimed if twins else None
                    yield self._wrong_at(
                        extreme, at, place.position, place.element, found, where, joint
                    )
                    break

    def _right_at_neighbour(
        self, at: SlopesAtPoint, place: SpecialElement, twins: tuple[int, ...], claimed: float
    ) -> bool:
        """Whether the gradient is that of a point one unit in the last place away: a bound that is
        rounded in the op's dtype differs in float64, and lies next to the element there."""
        unit = self._measured.units[place.position]
        for shift in (unit, -unit) if unit else ():
            near = at.neighbour(place.position, [place.element, *twins], shift)
            found = near and near.element(place.position, place.element, self._step, *twins)
            if found and not found.excludes(claimed, self._measured.slack(found, claimed)):
                return True
        return False

    def _right_together(self, at: SlopesAtPoint, places: Sequence[SpecialElement]) -> bool:
        """Whether the special elements, moved all at once by different amounts, meet no kink, and
        the gradient predicts the change: then each of them is right."""
        if len(places) < 2 or any(
            self._measured.project[place.position] is not None for place in places
        ):
            return False
        elements: dict[int, list[int]] = {place.position: [] for place in places}
        for place in places:
            elements[place.position].append(place.element)
        found = at.elements(elements, self._step)
        if found is None:
            return False
        slopes, claimed, size = found
        slack = TOGETHER_TOLERATED * size + slopes.noise + slopes.floor
        return slopes.smooth(TOGETHER_TOLERATED) and not slopes.excludes(claimed, slack)

    def _whole(
        self, extreme: ExtremePoint, at: SlopesAtPoint, usable: Sequence[int]
    ) -> Iterator[WrongAtPoint]:
        moved = [k for k in usable if not torch.equal(at.values[k], self._measured.typical[k])]
        moved = moved or list(usable)
        found = at.along(moved, self._step, seed=0) if moved else None
        if found is None:
            return
        if not found[0].smooth(self._tolerated):
            if extreme.name == "ties":
                yield from self._together(extreme, at, moved)
            return
        self.judged.append(extreme.name)
        slopes, claimed, size = found
        if not slopes.excludes(claimed, self._measured.slack(slopes, size)):
            return
        for position in moved:
            if self._differs(at, position) and is_stable(
                self._subject, extreme, at.gradients[position], position
            ):
                worst = self._worst(at, position)
                if worst is not None:
                    yield self._wrong_at(extreme, at, position, *worst, extreme.words)

    def _together(
        self, extreme: ExtremePoint, at: SlopesAtPoint, moved: Sequence[int]
    ) -> Iterator[WrongAtPoint]:
        """Equal elements moved so that they stay equal: whichever value a gradient takes at
        the kink between them, it must predict this change (conservative fields, Bolte & Pauwels
        2021)."""
        for position in moved:
            found = at.along([position], self._step, seed=VALUES_DIRECTION)
            if found is None or not found[0].smooth(self._tolerated):
                continue
            self.judged.append("ties")
            slopes, claimed, size = found
            if not slopes.excludes(claimed, self._measured.slack(slopes, size)):
                continue
            again = at.along([position], WIDER * self._step, seed=VALUES_DIRECTION)
            if again is None:
                continue
            if abs(slopes.right - again[0].right) > STEADY * slopes.size + slopes.noise:
                continue
            if is_stable(self._subject, extreme, at.gradients[position], position):
                yield self._wrong_at(extreme, at, position, 0, slopes, EQUAL, claimed)

    def _differs(self, at: SlopesAtPoint, position: int) -> bool:
        """Whether the gradient of one input is wrong along two fresh directions, and f changes
        along their sum as along both: else it has no gradient here."""
        for seed in (1, 2):
            found = at.along([position], self._step, seed=seed)
            again = at.along([position], WIDER * self._step, seed=seed)
            if found is None or again is None or not found[0].smooth(self._tolerated):
                return False
            if not found[0].excludes(found[1], self._measured.slack(found[0], found[2])):
                return False
            if abs(found[0].right - again[0].right) > STEADY * found[0].size + found[0].noise:
                return False
        return at.is_additive(position, self._step)

    def _worst(self, at: SlopesAtPoint, position: int) -> tuple[int, OneSidedSlopes] | None:
        gradient = at.gradients[position].reshape(-1)
        count = gradient.numel()
        order = dict.fromkeys(
            [int(gradient.abs().argmax()), *range(0, count, max(1, count // SHOWN))]
        )
        worst: tuple[float, int, OneSidedSlopes] | None = None
        for element in order:
            found = at.element(position, element, self._step)
            if found is None:
                continue
            claimed = float(gradient[element])
            error = max(found.low - claimed, claimed - found.high)
            if found.excludes(claimed, self._measured.slack(found, claimed)) and (
                worst is None or error > worst[0]
            ):
                worst = (error, element, found)
        return worst and (worst[1], worst[2])

    def _wrong_at(
        self,
        extreme: ExtremePoint,
        at: SlopesAtPoint,
        position: int,
        element: int,
        found: OneSidedSlopes,
        where: str,
        claimed: float | None = None,
    ) -> WrongAtPoint:
        value = at.values[position]
        spots = torch.unravel_index(torch.tensor(element), value.shape) if value.dim() else ()
        return WrongAtPoint(
            position,
            where,
            [int(k) for k in spots],
            float(value.reshape(-1)[element]),
            float(at.gradients[position].reshape(-1)[element]) if claimed is None else claimed,
            found.right,
            found.left,
            claimed is not None or not found.smooth(self._tolerated),
            KINDS[extreme.name],
        )

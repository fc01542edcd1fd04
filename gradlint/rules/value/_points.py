"""Gradients at special points, held against what the function does on either side.

Per output j, with D⁺ⱼ and D⁻ⱼ the slopes of f_j along u to the right and to the left, a gradient g
under the cotangent v is right

- at a smooth point (D⁺ = D⁻) when ⟨g, u⟩ = Σⱼ vⱼ·Dⱼ;
- at a kink of single elements when ⟨g, u⟩ lies in Σⱼ [vⱼ·D⁻ⱼ, vⱼ·D⁺ⱼ], the sum of the intervals.

Where whole tensors are special, kinks inside of f may cancel in ways that no interval shows: only
smooth points are judged there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from gradlint.numerics._differences import significand_bits
from gradlint.numerics._products import all_finite, rms, unit_roundoff, widened
from gradlint.numerics._verdict import SINGLE_PRECISION, InputJudgement
from gradlint.rules._same import share_of
from gradlint.rules.contract._dependence import wide_problem
from gradlint.rules.finite._extremes import WORDS
from gradlint.rules.value._slopes import STEADY, TOGETHER, Point, Slopes, Wrong, stable
from gradlint.trace._problem import OpRaised, draws_random_numbers

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject
    from gradlint.rules.finite._extremes import Extreme
    from gradlint.rules.finite._special import Place
    from gradlint.trace._problem import Output, Problem

#: Steps relative to the elements, by significand bits: slopes on one side need few digits.
STEPS = {53: 2.0**-24, 24: 2.0**-9}

#: The step at which a suspicion is looked at again: jumps and roots have other slopes there.
WIDER = 2.0**5

#: What is looked for is wrong in the first digits (heuristic), by significand bits.
TOLERATED = {53: 1e-3, 24: 2e-2}

#: Elements of a gradient are rounding below this many times the dtype's ε of its typical element at
#: the sample, and vanish below this many times its smallest normal number (heuristic).
ROUNDINGS, MOST_TINY = 16.0, 16.0

#: Elements that are measured one by one for the evidence, in each input that is wrong.
SHOWN = 6

#: Where equal elements move together, as a message says it.
EQUAL = "where equal elements move together"

#: Special elements are right together when the gradient tells their change this closely: ten times
#: closer than what is looked for, since each is a part of the whole (heuristic).
TOGETHER_TOLERATED = 1e-4

#: Forward computes something else than its twin where an output is off by more than this share of
#: the largest (heuristic: its first digit; float16 that has overflowed on the way is off by all).
LOST = 0.1

#: Special elements that are measured, at most, over all inputs.
MOST_PLACES = 6


class Points:
    """The special points of one subject."""

    def __init__(self, subject: Subject, inputs: Sequence[int]) -> None:
        self._subject = subject
        self._inputs = inputs
        # Other random numbers may be drawn in float64, or its outputs may be as coarse there: then
        # the op itself is measured.
        own = draws_random_numbers(subject.problem) or _has_no_twin(subject)
        twin = subject.first_order.twin
        self._casts_to = None if own or twin is None else twin.function.stands_for
        self._wide = subject.problem if own else self._widened(subject.problem)
        self._typical = self._wide.values()
        outputs = [o.value for o in self._wide_outputs() if o.name in subject.run.cotangents]
        dtypes = [value.dtype for value in (*self._typical, *outputs)]
        bits = min(significand_bits(dtype) for dtype in dtypes)
        self._roundoff = max(unit_roundoff(dtype) for dtype in dtypes)
        # An op may take float64 and compute float32: its outputs step where theirs are smooth.
        noise = self._roundoff * max((item.kappa for item in _judged(subject, inputs)), default=1.0)
        if bits > 24 and noise > SINGLE_PRECISION:
            bits, self._roundoff = 24, max(noise, unit_roundoff(torch.float32))
        self._floors = [
            ROUNDINGS * torch.finfo(self._casts_to or v.dtype).eps * (0.0 if g is None else rms(g))
            + MOST_TINY * torch.finfo(v.dtype).tiny
            for v, g in zip(subject.problem.values(), subject.run.gradients or [], strict=True)
        ]
        self._project = subject.first_order_map.project or [None] * len(self._typical)
        self._step, self._bits = STEPS.get(bits, 0.0), bits
        self._cotangents = {name: widened(v) for name, v in subject.run.cotangents.items()}
        self.judged: list[str] = []
        values = (*subject.problem.values(), *self._cotangents.values())
        low = (share_of(self._casts_to or v.dtype) for v in values)
        self._tolerated = max(TOLERATED.get(bits, 0.0), *low)

    @property
    def measurable(self) -> bool:
        """Whether the function is known in enough digits."""
        return self._step > 0.0

    def wrong(self, extreme: Extreme) -> Iterator[Wrong]:
        """The inputs whose gradient is wrong at ``extreme``."""
        gradients = extreme.gradients
        if not extreme.finite or gradients is None:
            return
        # Values of the twin are those of the low dtype; its outputs stand for the function.
        problem = self._wide
        if extreme.problem is not self._subject.problem:
            widen = self._wide is not self._subject.problem
            problem = self._widened(extreme.problem) if widen else extreme.problem
        values = extreme.make()
        point = [v.to(t.dtype) for v, t in zip(values, self._typical, strict=True)]
        wides = [
            torch.zeros_like(widened(v)) if g is None else widened(g)
            for v, g in zip(point, gradients, strict=True)
        ]
        usable = [
            k
            for k in self._inputs
            if point[k].is_floating_point()
            and point[k].layout == torch.strided
            and all_finite(wides[k])
        ]
        if any(g.shape != v.shape for g, v in zip(wides, point, strict=True)):
            return
        if problem is extreme.problem:
            base: dict[str, torch.Tensor] | None = {
                name: widened(extreme.outputs[name]) for name in self._cotangents
            }
        else:
            base = self._outputs(problem, point)
            if base is not None and _lost(extreme.outputs, base):
                return  # its gradient is that of what forward computes, in its own dtype
        if base is None:
            return
        sizes = [rms(value) or 1.0 for value in self._typical]
        at = Point(
            lambda values: self._outputs(problem, values),
            self._cotangents,
            base,
            point,
            wides,
            sizes,
            self._roundoff,
            [
                floor
                + share_of(self._casts_to or v.dtype) * (float(g.abs().max()) if g.numel() else 0.0)
                for floor, g, v in zip(self._floors, wides, values, strict=True)
            ],
            self._project,
        )
        if extreme.name == "single":
            yield from self._single(extreme, at, usable)
        else:
            yield from self._whole(extreme, at, usable)

    def _single(self, extreme: Extreme, at: Point, usable: Sequence[int]) -> Iterator[Wrong]:
        told: set[int] = set()
        places = extreme.places[:MOST_PLACES]
        if self._right_together(at, [place for place in places if place.position in usable]):
            self.judged.append(extreme.name)
            return
        for place in places:
            if place.position not in usable or place.position in told:
                continue
            if self._project[place.position] is not None:
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
                if not found.excludes(claimed, self._slack(found, claimed)):
                    continue
                if self._steady(at, place, found, twins):
                    told.add(place.position)
                    where = (
                        f"where {'equal elements move together' if twins else f'it {place.words}'}"
                    )
                    joint = claimed if twins else None
                    yield self._told(at, place.position, place.element, found, where, joint)
                    break

    def _right_together(self, at: Point, places: Sequence[Place]) -> bool:
        """Whether the special elements, moved all at once by different amounts, meet no kink, and
        the gradient tells the change: then each of them is right."""
        if len(places) < 2 or any(self._project[place.position] is not None for place in places):
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

    def _whole(self, extreme: Extreme, at: Point, usable: Sequence[int]) -> Iterator[Wrong]:
        moved = [k for k in usable if not torch.equal(at.values[k], self._typical[k])]
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
        if not slopes.excludes(claimed, self._slack(slopes, size)):
            return
        for position in moved:
            if self._differs(at, position) and stable(
                self._subject, extreme, at.gradients[position], position
            ):
                worst = self._worst(at, position)
                if worst is not None:
                    yield self._told(at, position, *worst, WORDS[extreme.name])

    def _together(self, extreme: Extreme, at: Point, moved: Sequence[int]) -> Iterator[Wrong]:
        """Equal elements moved so that they stay equal: whatever a gradient makes of the kink
        between them, it must tell this change (conservative fields, Bolte & Pauwels 2021)."""
        for position in moved:
            found = at.along([position], self._step, seed=TOGETHER)
            if found is None or not found[0].smooth(self._tolerated):
                continue
            self.judged.append("ties")
            slopes, claimed, size = found
            if not slopes.excludes(claimed, self._slack(slopes, size)):
                continue
            again = at.along([position], WIDER * self._step, seed=TOGETHER)
            if again is None:
                continue
            if abs(slopes.right - again[0].right) > STEADY * slopes.size + slopes.noise:
                continue
            if stable(self._subject, extreme, at.gradients[position], position):
                yield self._told(at, position, 0, slopes, EQUAL, claimed)

    def _differs(self, at: Point, position: int) -> bool:
        """Whether the gradient of one input is wrong along two fresh directions, and the slope
        along their sum is the sum of the slopes: else f has no gradient here."""
        slopes = []
        for seed in (1, 2):
            found = at.along([position], self._step, seed=seed)
            again = at.along([position], WIDER * self._step, seed=seed)
            if found is None or again is None or not found[0].smooth(self._tolerated):
                return False
            if not found[0].excludes(found[1], self._slack(found[0], found[2])):
                return False
            if abs(found[0].right - again[0].right) > STEADY * found[0].size + found[0].noise:
                return False
            slopes.append(found[0])
        both = at.along([position], self._step, seed=3)  # the sum of directions 1 and 2
        if both is None:
            return False
        gap = abs(both[0].right - slopes[0].right - slopes[1].right)
        return gap <= STEADY * max(one.size for one in slopes) + both[0].noise

    def _worst(self, at: Point, position: int) -> tuple[int, Slopes] | None:
        gradient = at.gradients[position].reshape(-1)
        count = gradient.numel()
        order = dict.fromkeys(
            [int(gradient.abs().argmax()), *range(0, count, max(1, count // SHOWN))]
        )
        worst: tuple[float, int, Slopes] | None = None
        for element in order:
            found = at.element(position, element, self._step)
            if found is None:
                continue
            claimed = float(gradient[element])
            error = max(found.low - claimed, claimed - found.high)
            if found.excludes(claimed, self._slack(found, claimed)) and (
                worst is None or error > worst[0]
            ):
                worst = (error, element, found)
        return worst and (worst[1], worst[2])

    def _steady(self, at: Point, place: Place, found: Slopes, twins: Sequence[int]) -> bool:
        """Whether slopes over a wider step are the same: no jump, no root."""
        again = at.element(place.position, place.element, WIDER * self._step, *twins)
        if again is None:
            return False
        gap = max(abs(found.right - again.right), abs(found.left - again.left))
        return gap <= STEADY * found.size + found.noise

    def _slack(self, found: Slopes, claimed: float) -> float:
        return self._tolerated * (found.size + abs(claimed)) + found.noise + found.floor

    def _told(
        self,
        at: Point,
        position: int,
        element: int,
        found: Slopes,
        where: str,
        claimed: float | None = None,
    ) -> Wrong:
        value = at.values[position]
        spots = torch.unravel_index(torch.tensor(element), value.shape) if value.dim() else ()
        return Wrong(
            position,
            where,
            [int(k) for k in spots],
            float(value.reshape(-1)[element]),
            float(at.gradients[position].reshape(-1)[element]) if claimed is None else claimed,
            found.right,
            found.left,
            claimed is not None or not found.smooth(self._tolerated),
        )

    def _widened(self, problem: Problem) -> Problem:
        """``problem`` in float64, without casts to 16 bits where its twin is."""
        exact = problem.exact() if self._casts_to is not None else None
        return exact[0] if exact is not None else wide_problem(self._subject, problem)

    def _wide_outputs(self) -> Sequence[Output]:
        if self._wide is self._subject.problem:
            return self._subject.run.outputs
        return self._wide.forward()

    def _outputs(
        self, problem: Problem, values: list[torch.Tensor]
    ) -> dict[str, torch.Tensor] | None:
        try:
            found = {item.name: widened(item.value) for item in problem.forward(values)}
        except OpRaised:
            return None
        for name, v in self._cotangents.items():
            if name not in found or found[name].shape != v.shape:
                return None
        return found


def _judged(subject: Subject, inputs: Sequence[int]) -> list[InputJudgement]:
    """What was measured at the sample, of the function that is measured here too."""
    decision = subject.first_order.twin or subject.first_order
    return [item for item in decision.judgement.inputs if item.index in inputs]


def _has_no_twin(subject: Subject) -> bool:
    """Whether what the op computes in float64 was found to say nothing of what it computes here."""
    compared = subject.first_order.compared.values()
    return bool(compared) and not any(found.compared for found in compared)


def _lost(outputs: Mapping[str, torch.Tensor], twin: Mapping[str, torch.Tensor]) -> bool:
    """Whether ``outputs`` are not those of the ``twin``, rounded: an intermediate value overflowed,
    or all digits cancelled."""
    for name, wide in twin.items():
        gap = (widened(outputs[name]) - wide).abs()
        finite = wide.abs().nan_to_num(0.0, 0.0, 0.0)
        if wide.numel() and bool((gap > LOST * finite.max()).any()):
            return True
    return False

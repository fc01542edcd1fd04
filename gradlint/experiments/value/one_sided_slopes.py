"""Slopes of the outputs at a point, from above and from below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.experiments.baseline_comparison import jitter
from gradlint.experiments.finite.extremes import ExtremePoint
from gradlint.experiments.subject import Subject
from gradlint.model.report import Where
from gradlint.numerics.map import Projection
from gradlint.numerics.products import norm, real_dot, unit_roundoff, widened
from gradlint.trace.op_io import OpRaised

#: Roundings of the outputs that a difference of two of them may hold (heuristic).
ROUNDINGS = 16.0

#: Where slopes at two steps differ by more than this share, there is a jump, a root or an
#: oscillation.
STEADY = 5e-2

#: Seed that stands for the direction of the values themselves.
VALUES_DIRECTION = -1


@dataclass(frozen=True)
class OneSidedSlopes:
    """Slopes of the outputs along one direction, weighted by the cotangents.

    Args:
        low, high: ends of Σⱼ [vⱼ·D⁻ⱼ, vⱼ·D⁺ⱼ].
        right, left: Σⱼ vⱼ·D⁺ⱼ and Σⱼ vⱼ·D⁻ⱼ.
        size: Σⱼ |vⱼ|·max(|D⁺ⱼ|, |D⁻ⱼ|).
        noise: rounding of the above; ``floor``: of what a gradient predicts.
    """

    low: float
    high: float
    right: float
    left: float
    size: float
    noise: float
    floor: float

    def smooth(self, tolerated: float) -> bool:
        """Whether no output has a kink."""
        return self.high - self.low <= tolerated * self.size + self.noise

    def excludes(self, claimed: float, slack: float) -> bool:
        """Whether a gradient that predicts ``claimed`` is wrong."""
        return not self.low - slack <= claimed <= self.high + slack


@dataclass(frozen=True)
class WrongAtPoint:
    """One wrong gradient.

    Args:
        position: of the input.
        where: words for the point.
        index: the worst element measured; ``returned`` and the one-sided slopes there.
        kink: whether the one-sided slopes differ there.
        kind: of the inputs at this point.
    """

    position: int
    where: str
    index: list[int]
    value: float
    returned: float
    right: float
    left: float
    kink: bool
    kind: Where = "special"

    @property
    def nearest(self) -> float:
        """The one-sided slope to which the returned gradient comes nearest."""
        return min((self.right, self.left), key=lambda slope: abs(slope - self.returned))

    @property
    def relative_error(self) -> float:
        """The error beside the size of what was returned and measured."""
        size = max(abs(self.returned), abs(self.nearest))
        return abs(self.returned - self.nearest) / size if size > 0.0 else 0.0


class SlopesAtPoint:
    """One point, and slopes of the outputs along directions from there.

    Args:
        evaluate: outputs by name, in float64, at values of the inputs; None where they can't be
            compared with those at the point.
        cotangents: of the outputs; ``base``: the outputs at the point.
        values: of the inputs at the point; ``gradients``: those claimed there.
        typical: sizes of the elements of each input, for steps from zero.
        roundoff: of the coarsest dtype among inputs and outputs.
        floors: below which an element of a gradient is rounding, by position.
        project: keeps directions of an input inside its domain, by position.
    """

    def __init__(
        self,
        evaluate: Callable[[list[torch.Tensor]], dict[str, torch.Tensor] | None],
        cotangents: dict[str, torch.Tensor],
        base: dict[str, torch.Tensor],
        values: list[torch.Tensor],
        gradients: list[torch.Tensor],
        typical: Sequence[float],
        roundoff: float,
        floors: Sequence[float],
        project: Sequence[Projection | None],
    ) -> None:
        self._evaluate, self._cotangents, self._base = evaluate, cotangents, base
        self.values, self.gradients, self._typical = values, gradients, typical
        self._roundoff, self._floors, self._project = roundoff, floors, project

    def element(
        self, position: int, element: int, step: float, *twins: int
    ) -> OneSidedSlopes | None:
        """Slopes along one element, moved together with its ``twins``, per unit."""
        value = self.values[position]
        size = max(abs(float(value.reshape(-1)[element])), self._typical[position])
        flat = torch.zeros(value.numel(), dtype=value.dtype, device=value.device)
        flat[[element, *twins]] = size * step
        direction = flat.reshape(value.shape)
        floor = (1 + len(twins)) * self._floors[position]
        return self._slopes({position: direction}, size * step, floor)

    def neighbour(
        self, position: int, elements: Sequence[int], shift: float
    ) -> SlopesAtPoint | None:
        """The point at which some elements of one input are multiplied by ``1 + shift``, with the
        gradients of this point; None where the op can't be evaluated there."""
        values = list(self.values)
        values[position] = values[position].clone(memory_format=torch.contiguous_format)
        values[position].view(-1)[list(elements)] *= 1.0 + shift
        base = self._evaluate(values)
        return None if base is None else self._with(base, values, self.gradients)

    def with_gradients(self, gradients: list[torch.Tensor]) -> SlopesAtPoint:
        """This point with other gradients claimed there."""
        return self._with(self._base, self.values, gradients)

    def _with(
        self,
        base: dict[str, torch.Tensor],
        values: list[torch.Tensor],
        gradients: list[torch.Tensor],
    ) -> SlopesAtPoint:
        return SlopesAtPoint(
            self._evaluate,
            self._cotangents,
            base,
            values,
            gradients,
            self._typical,
            self._roundoff,
            self._floors,
            self._project,
        )

    def elements(
        self, chosen: dict[int, list[int]], step: float
    ) -> tuple[OneSidedSlopes, float, float] | None:
        """Slopes along single elements of several inputs at once, each by a different amount, with
        what the gradient predicts, and Σ |gᵢ·uᵢ|."""
        directions, claimed, size, floor = {}, 0.0, 0.0, 0.0
        for position, flat in chosen.items():
            value, gradient = self.values[position], self.gradients[position]
            typical = self._typical[position]
            unit = torch.zeros(value.numel(), dtype=torch.float64, device=value.device)
            for number, element in enumerate(flat):
                # The amounts differ, and so do their sums and differences.
                amount = (1.0 + 0.618 * (number + 1 + position) % 1.0) * (-1.0) ** number
                unit[element] = amount * max(abs(float(value.reshape(-1)[element])), typical)
            unit = unit.reshape(value.shape)
            directions[position] = (unit * step).to(value.dtype)
            claimed += real_dot(gradient, unit)
            size += float((gradient * unit).abs().sum())
            floor += self._floors[position] * float(unit.abs().sum())
        found = self._slopes(directions, step, floor)
        return None if found is None else (found, claimed, size)

    def along(
        self, positions: Sequence[int], step: float, *, seed: int
    ) -> tuple[OneSidedSlopes, float, float] | None:
        """Slopes along one direction, with what the gradient predicts, and Σ |gᵢ·uᵢ|.

        Args:
            seed: 0 for a direction aligned with the gradient, 1 and 2 for random ones,
                :data:`VALUES_DIRECTION` for the values themselves: equal elements stay equal.
        """
        directions, claimed, size, floor = {}, 0.0, 0.0, 0.0
        for position in positions:
            unit = self._unit(position, seed)
            directions[position] = (unit * step).to(self.values[position].dtype)
            claimed += real_dot(self.gradients[position], unit)
            size += float((self.gradients[position] * unit).abs().sum())
            floor += self._floors[position] * float(unit.abs().sum())
            del unit
        found = self._slopes(directions, step, floor)
        return None if found is None else (found, claimed, size)

    def is_additive(self, position: int, step: float) -> bool:
        """Whether every output changes along the sum and the difference of the random directions as
        along both of them: at a point where values are equal, a function of their order is smooth
        along every line, and has no gradient all the same.

        Outputs are compared one by one: weighted by cotangents, their gaps may cancel by chance.
        """
        one, other = (self._unit(position, seed) for seed in (1, 2))
        changes = []
        for unit in (one, other, one + other, one - other):
            values = list(self.values)
            values[position] = values[position] + (unit * step).to(values[position].dtype)
            found = self._evaluate(values)
            if found is None:
                return False
            changes.append(found)
        for name in self._cotangents:
            base = self._base[name]
            first, second, both, apart = (
                torch.where(base.isfinite(), found[name] - base, 0.0) for found in changes
            )
            gap = max(norm(both - first - second), norm(apart - first + second))
            size = max(norm(first), norm(second))
            noise = ROUNDINGS * self._roundoff * norm(torch.where(base.isfinite(), base, 0.0))
            if not gap <= STEADY * size + noise:
                return False
        return True

    def _unit(self, position: int, seed: int) -> torch.Tensor:
        """The direction of :meth:`along` in one input."""
        value, gradient = self.values[position], self.gradients[position]
        signs = gradient.sign() if seed == 0 else torch.zeros_like(gradient)
        generator = torch.Generator().manual_seed(100 * position + seed)
        drawn = torch.rand((2, *value.shape), generator=generator, dtype=torch.float64)
        drawn = drawn.to(gradient.device)
        chosen = torch.where(signs == 0, (drawn[0] - 0.5).sign(), signs)
        unit = chosen * (0.5 + drawn[1])
        unit = unit * torch.where(value == 0, self._typical[position], value.abs())
        unit = widened(value) if seed == VALUES_DIRECTION else unit
        keep = self._project[position]
        return unit if keep is None else keep(unit)

    def _slopes(
        self, directions: dict[int, torch.Tensor], h: float, floor: float
    ) -> OneSidedSlopes | None:
        sides = []
        for sign in (1.0, -1.0):
            values = list(self.values)
            for position, direction in directions.items():
                values[position] = self.values[position] + sign * direction
            found = self._evaluate(values)
            if found is None:
                return None
            sides.append(found)
        values.clear()
        low = high = right = left = size = noise = 0.0
        for name, v in self._cotangents.items():
            base = self._base[name]
            above, below = sides[0].pop(name), sides[1].pop(name)
            kept = (above == base) & (below == base)
            ups = (v * (above - base)).div_(h).masked_fill_(kept, 0.0)
            downs = (v * (base - below)).div_(h).masked_fill_(kept, 0.0)
            del above, below
            if ups.is_complex() or not bool((ups.isfinite() & downs.isfinite()).all()):
                return None
            low += float(torch.minimum(ups, downs).sum())
            high += float(torch.maximum(ups, downs).sum())
            right += float(ups.sum())
            left += float(downs.sum())
            size += float(torch.maximum(ups.abs(), downs.abs()).sum())
            finite = torch.where(base.isfinite(), base, torch.zeros_like(base))
            noise += ROUNDINGS * self._roundoff * float((v * finite).abs().sum()) / h
        return OneSidedSlopes(low, high, right, left, size, noise, floor)


def is_stable(
    subject: Subject, extreme: ExtremePoint, gradient: torch.Tensor, position: int
) -> bool:
    """Whether the gradient of input ``position`` stays the same when the inputs move by a
    few roundoffs: an error of an ill-conditioned gradient is not a defect. Equal elements stay
    equal."""
    for times in (3.0, 7.0):
        moved = [
            value * (1.0 + times * unit_roundoff(value.dtype))
            if extreme.name == "ties"
            else jitter(value, subject.seed)
            for value in extreme.make()
        ]
        try:
            found = extreme.problem.pull(subject.run.cotangents, moved)[position]
        except OpRaised:
            return False
        gap = 0.0 if found is None else norm(widened(found) - gradient)
        if gap > STEADY * norm(gradient):
            return False
    return True

"""One-sided derivatives along single elements, and whether they exist.

With D(h) = Re⟨v, f(x + h·e) − f(x)⟩ / h over steps h₁ > h₂ > …, a finite derivative from the right
shows as differences D(h_k) − D(h_{k+1}) that shrink: by the ratio of the steps where f is smooth.
At a root they grow, at x·log x they stay the same, and at a jump D itself grows like 1/h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from gradlint.experiments.judged_dtype import float64_problem
from gradlint.experiments.subject import Subject
from gradlint.numerics.differences import significand_bits
from gradlint.numerics.products import real_dot, rms, unit_roundoff, widened
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem

#: Steps 2^−e by bits of the significand: from where third derivatives vanish to where roundoff
#: takes over. Half precision has no room for this, and is not judged.
STEPS = {53: (7, 10, 13, 16, 19, 22), 24: (4, 6, 8, 10)}

#: Successive differences of D must shrink at least by this factor to count as converging
#: (x·|x|^½ shrinks by 0.35 in float64; x·log x not at all).
SHRINKS = 0.6

#: How many of the largest steps may be left out, plus one, and how many must be left (heuristic:
#: six in float64, where a threshold of 1e-3 lies beyond the second one; four in float32).
BEYOND, LEAST = 3, 4

#: One-sided derivatives that differ by less, relative to the steepest slope seen, are those of a
#: smooth function (heuristic: differences of the finest steps are right to more digits).
SMOOTH = 1e-2

#: Values below this have steps of the size of the sample's elements (heuristic: squares of the
#: smallest steps would vanish in float32).
TINY_SCALE = 1e-15

#: Roundings of ⟨v, f⟩ that a difference of two of them may hold (heuristic).
ROUNDINGS = 8.0


@dataclass(frozen=True)
class DerivativePair:
    """Derivatives from the right and from the left, None where the function is not finite there.

    ``unbounded`` says whether a side that can be evaluated has no finite derivative; ``scale`` is
    the steepest slope among the steps.
    """

    right: float | None
    left: float | None
    unbounded: bool
    limit: float
    scale: float = 0.0

    @property
    def known(self) -> bool:
        """Whether there is one on some side."""
        return self.right is not None or self.left is not None

    @property
    def smooth(self) -> bool:
        """Whether both sides have the same derivative."""
        if self.right is None or self.left is None:
            return False
        return abs(self.right - self.left) <= SMOOTH * self.scale

    def finite_for(self, returned: complex) -> bool:
        """Whether ``returned`` (NaN or infinite) is wrong, because a finite derivative exists
        here."""
        found = [side for side in (self.right, self.left) if side is not None]
        if not found or max(map(abs, found)) > self.limit:
            return False  # beyond the range of the dtype: a legitimate overflow
        # An infinite gradient may be the true derivative of the other side.
        nan = math.isnan(returned.real) or math.isnan(returned.imag)
        return nan or not self.unbounded


class OneSidedDerivatives:
    """One-sided derivatives of Re⟨v, f⟩ at a point, under the cotangents of the shared run.

    Args:
        subject: the op on its sample.
        problem: the op on other arguments; default the subject's.
        values: the point; default the sample's own. Steps where it is zero or tiny have the size
            of the sample's elements.
    """

    def __init__(
        self,
        subject: Subject,
        problem: Problem | None = None,
        values: Sequence[torch.Tensor] | None = None,
    ) -> None:
        self._problem = float64_problem(subject, problem)
        self._typical = self._problem.values()
        self._point = [
            value.to(like.dtype)
            for value, like in zip(
                self._typical if values is None else values, self._typical, strict=True
            )
        ]
        self._cotangents = self._weights(subject)
        self._dtypes = [item.value.dtype for item in subject.problem.inputs]
        self._seed = subject.seed
        self._base = self._outputs(self._point)

    def _weights(self, subject: Subject) -> dict[str, torch.Tensor]:
        """What each value of :meth:`_outputs` is weighed with."""
        return {name: widened(v) for name, v in subject.run.cotangents.items()}

    def at(self, index: int, where: list[int]) -> DerivativePair:
        """The derivatives along element ``where`` of input ``index``."""
        value = self._point[index]
        scale = max(abs(complex(value[tuple(where)].item())), rms(value))
        direction = torch.zeros_like(value)
        direction[tuple(where)] = self._step_scale(scale, index)
        return self._along({index: direction})

    def along(self, positions: Sequence[int]) -> DerivativePair:
        """The derivatives along a random direction in the inputs ``positions``."""
        return self._along(self._drawn(positions, self._seed))

    def are_those_of_a_gradient(self, index: int) -> bool:
        """Whether the derivatives along two random directions in input ``index`` add up to that
        along their sum, where f is smooth along all three lines. The best approximation of rank one
        is smooth along every line through the zero matrix, and has no gradient there."""
        one, other = (self._drawn([index], self._seed + k) for k in range(2))
        both = {index: one[index] + other[index]}
        found = [self._along(directions) for directions in (one, other, both)]
        if not all(pair.smooth for pair in found):
            return True
        units = [float(d[index].abs().max()) for d in (one, other, both)]
        first, second, sum_ = (
            (pair.right or 0.0) * u for pair, u in zip(found, units, strict=True)
        )
        scale = max(pair.scale * u for pair, u in zip(found, units, strict=True))
        return abs(sum_ - first - second) <= SMOOTH * scale

    def _drawn(self, positions: Sequence[int], seed: int) -> dict[int, torch.Tensor]:
        """A random direction in the inputs ``positions``."""
        generator = torch.Generator().manual_seed(seed)
        directions = {}
        for index in positions:
            value = self._point[index]
            drawn = torch.randn(value.shape, generator=generator, dtype=torch.float64)
            directions[index] = self._step_scale(rms(value), index) * drawn.to(value)
        return directions

    def _step_scale(self, scale: float, index: int) -> float:
        # Among denormal numbers no difference has correct digits.
        return scale if scale >= TINY_SCALE else rms(self._typical[index]) or 1.0

    def _outputs(self, values: list[torch.Tensor]) -> dict[str, torch.Tensor] | None:
        try:
            found = {item.name: widened(item.value) for item in self._problem.forward(values)}
        except OpRaised:
            return None
        wanted = self._cotangents.items()
        if any(name not in found or found[name].shape != v.shape for name, v in wanted):
            return None
        return found

    def _change(self, after: dict[str, torch.Tensor]) -> float:
        total, base = 0.0, self._base
        assert base is not None
        for name, v in self._cotangents.items():
            # Infinities that stay where they are do not change.
            kept = after[name] == base[name]
            moved = torch.where(kept, torch.zeros_like(after[name]), after[name] - base[name])
            total += real_dot(v, moved)
        return total

    def _along(self, directions: dict[int, torch.Tensor]) -> DerivativePair:
        values = [self._point[index] for index in directions]
        bits = min((significand_bits(value.dtype) for value in values), default=0)
        strided = all(value.layout == torch.strided for value in values)
        if self._base is None or bits not in STEPS or not strided:
            return DerivativePair(None, None, False, 0.0)
        vs = self._cotangents
        eps = max(unit_roundoff(t.dtype) for t in (*values, *vs.values()))
        terms = (widened(v).abs() * self._base[name].abs() for name, v in vs.items())
        size = sum(float(term[term.isfinite()].sum()) for term in terms)
        # What forward adds to outputs and subtracts again may be as large as what it is given.
        weight = sum(float(widened(v).abs().sum()) for v in vs.values())
        given = [float(widened(value).abs().max()) for value in values if value.numel()]
        size = max(size, weight * max(given, default=0.0))
        right = self._side(directions, STEPS[bits], eps * size)
        left = self._side({k: -d for k, d in directions.items()}, STEPS[bits], eps * size)
        limit = min(torch.finfo(self._dtypes[index]).max for index in directions) / 2
        slopes = (right[0], None if left[0] is None else -left[0])
        return DerivativePair(*slopes, right[1] or left[1], limit, max(right[2], left[2]))

    def _side(
        self, directions: dict[int, torch.Tensor], steps: Sequence[int], rounding: float
    ) -> tuple[float | None, bool, float]:
        """The derivative along ``directions`` per unit of the first one's largest element; whether
        it is unbounded; and the steepest slope seen."""
        slopes, noises = [], []
        for exponent in steps:
            moved = list(self._point)
            h = 0.0
            for index, direction in directions.items():
                moved[index] = self._point[index] + direction * 2.0**-exponent
                realised = widened(moved[index]) - widened(self._point[index])
                h = h or float(realised.abs().max())
            after = self._outputs(moved)
            total = self._change(after) if after is not None and h else math.nan
            if not math.isfinite(total):
                return None, False, 0.0
            slopes.append(total / h)
            noises.append(ROUNDINGS * rounding / h)
        gaps = [abs(a - b) for a, b in pairwise(slopes)]
        floors = [a + b for a, b in pairwise(noises)]
        shrinking = [
            fine <= SHRINKS * coarse + noise + 1e-9 * abs(slopes[-1])
            for coarse, fine, noise in zip(gaps, gaps[1:], floors[1:], strict=False)
        ]
        # The largest steps may lead beyond a threshold: what is below it counts.
        beyond = next((k for k in range(BEYOND) if all(shrinking[k:])), None)
        if beyond is None or len(slopes) - beyond < LEAST:
            return None, True, max(map(abs, slopes))
        return slopes[-1], False, max(map(abs, slopes[beyond:]))

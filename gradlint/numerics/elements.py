"""Measure single elements of a gradient, and the unexplained slopes along sets of them.

One pair of evaluations f(x ± h·u) yields J·u, and with it the slope ⟨v, J·u⟩ under every cotangent
v at once: a measurement under a second cotangent costs a sum, not a call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from gradlint.numerics.differences import LADDER, Step, estimate, noise_of, predicted_change
from gradlint.numerics.directions import move_scale
from gradlint.numerics.map import Map, along, working_bits
from gradlint.numerics.products import real_dot, widened

#: Exponents of the steps by which elements are measured: the ladder and, in float64, one coarser
#: step, since a single element is a small part of outputs that carry the rounding of the whole.
STEPS = {**LADDER, 53: (10, *LADDER[53])}

#: Exponents for functions whose noise is that of float32 or worse: the finer steps drown in it.
NOISY_STEPS = {53: (3, 5, 7, 10, 13)}

#: Noise, in units of one rounding of float64, from which on :data:`NOISY_STEPS` are taken
#: (heuristic: float32 inside has 2^26 to 2^30, a solver that stops at 1e-10 about 2^20).
NOISY = 2.0**20

#: If more elements than this are measured, each is measured with the three coarsest steps only, the
#: fewest that show how well they agree.
ALL_STEPS = 64


@dataclass
class Elements:
    """Measured elements of ∇⟨v, f⟩ with respect to one input.

    Args:
        indices: flat positions measured, int64, in ascending order.
        measured: the derivative at each, float64 or complex128.
        bars: error bar of each, float64.
    """

    indices: torch.Tensor
    measured: torch.Tensor
    bars: torch.Tensor


@dataclass
class Change:
    """How the outputs changed over one central difference.

    Args:
        h: nominal step.
        moved: x₊ − x₋, as realised, NaN where both are infinite; float64 or complex128.
        outputs: f(x₊) − f(x₋), one per output; float64 or complex128.
    """

    h: float
    moved: torch.Tensor
    outputs: list[torch.Tensor]

    def step(
        self, cotangents: Sequence[torch.Tensor], claimed: torch.Tensor | None, noise: float
    ) -> Step | None:
        """The slope under ``cotangents`` and the part that ``claimed`` leaves unexplained; None if
        it is not finite.

        Args:
            claimed: the gradient under test; None leaves all of the slope unexplained.
            noise: standard deviation of the change under ``cotangents``.
        """
        change = sum(real_dot(v, c) for v, c in zip(cotangents, self.outputs, strict=True))
        if not math.isfinite(change) or not math.isfinite(noise):
            return None
        width = 2.0 * self.h
        predicted = 0.0 if claimed is None else predicted_change(claimed, self.moved)
        return Step(self.h, change / width, (change - predicted) / width, noise / width)


class Residuals:
    """Measures the slopes that claimed gradients of one input leave unexplained along directions.

    Args:
        function: the map; its point is where derivatives are taken.
        index: position of the input that is moved.
        cotangents: sets of cotangents; each set has one tensor per output.
        claimed: the gradient under test for each set.
        kappa: factor by which the noise exceeds the ulp model.

    Attributes:
        calls: number of evaluations made.
    """

    def __init__(
        self,
        function: Map,
        index: int,
        cotangents: Sequence[Sequence[torch.Tensor]],
        claimed: Sequence[torch.Tensor],
        *,
        kappa: float = 1.0,
    ) -> None:
        self.function, self.index, self.kappa = function, index, kappa
        self.cotangents, self.claimed = cotangents, claimed
        self.value = function.values[index]
        self.bits = working_bits(function, self.value)
        self.calls = 0
        self._evaluate = along(function, index)

    def __len__(self) -> int:
        return len(self.cotangents)

    @cached_property
    def _noise(self) -> list[float]:
        outputs, rounding = self.function.outputs, self.function.rounding
        return [noise_of(vs, outputs, outputs, rounding) for vs in self.cotangents]

    def step(self, u: torch.Tensor, h: float) -> list[Step] | None:
        """One central difference along ``u`` under each set of cotangents; None if the function is
        not finite there."""
        taken = self.change(u, h)
        return None if taken is None else self.steps(taken, self.claimed)

    def steps(self, taken: Change, claimed: Sequence[torch.Tensor | None]) -> list[Step] | None:
        """The slope under each set of cotangents, beside the gradient claimed for it; None if one
        is not finite."""
        found = []
        for vs, gradient, noise in zip(self.cotangents, claimed, self._noise, strict=True):
            step = taken.step(vs, gradient, noise)
            if step is None:
                return None
            found.append(step)
        return found

    def change(self, u: torch.Tensor, h: float) -> Change | None:
        """f(x + h·u) − f(x − h·u); None if the shapes change or the function cannot be evaluated
        there."""
        x = self.value
        wide, shift = widened(x), h * u
        plus, minus = (wide + shift).to(x.dtype), (wide - shift).to(x.dtype)
        self.calls += 2
        after, before = self._evaluate(plus), self._evaluate(minus)
        if after is None or before is None:
            return None
        if any(
            high.shape != y.shape or low.shape != y.shape
            for high, low, y in zip(after, before, self.function.outputs, strict=True)
        ):
            return None
        return Change(
            h,
            widened(plus) - widened(minus),
            [widened(a) - widened(b) for a, b in zip(after, before, strict=True)],
        )


def measure_elements(residuals: Residuals, chosen: Sequence[int]) -> list[Elements]:
    """Central differences with respect to single elements, under every set of cotangents.

    Args:
        residuals: of the input; the claimed gradients are not used.
        chosen: flat positions to measure, in ascending order.
    """
    x, count = residuals.value, len(chosen)
    scale = move_scale(x).flatten()
    noisy = residuals.bits in NOISY_STEPS and residuals.kappa >= NOISY
    exponents = (NOISY_STEPS if noisy else STEPS)[residuals.bits]
    exponents = exponents if count <= ALL_STEPS else exponents[:3]
    units = (1.0, 1j) if x.is_complex() else (1.0,)
    wide = torch.complex128 if x.is_complex() else torch.float64
    measured = torch.full((len(residuals), len(units), count), float("nan"), dtype=torch.float64)
    bars = torch.full((len(residuals), len(units), count), float("inf"), dtype=torch.float64)
    nothing = [None] * len(residuals)
    for place, element in enumerate(chosen):
        size = float(scale[element])
        for part, unit in enumerate(units):
            u = torch.zeros(x.shape, dtype=wide, device=x.device)
            u.view(-1)[element] = torch.tensor(unit * size, dtype=wide)
            u = residuals.function.projected(residuals.index, u)
            reach = float(u.reshape(-1)[element].abs())
            steps: list[list[Step]] = []
            for exponent in exponents:
                taken = residuals.change(u, 2.0**-exponent)
                each = residuals.steps(taken, nothing) if taken is not None else None
                if taken is not None and each is not None:
                    share = _realised(taken, element, reach)
                    steps.append([_per_realised(step, share) for step in each])
            for k in range(len(residuals)):
                found = estimate([each[k] for each in steps], residuals.kappa)
                if found is not None and size > 0.0:
                    measured[k, part, place] = found.slope / size
                    bars[k, part, place] = found.bar / size
    values = torch.complex(measured[:, 0], measured[:, 1]) if len(units) > 1 else measured[:, 0]
    indices = torch.tensor(list(chosen), dtype=torch.int64)
    return [Elements(indices, values[k], bars[k].max(dim=0).values) for k in range(len(residuals))]


def _realised(change: Change, element: int, reach: float) -> float:
    """The share of the nominal step by which one element really moved in its dtype.

    Args:
        reach: the size of that element of the direction.
    """
    wanted = 2.0 * change.h * reach
    found = float(change.moved.reshape(-1)[element].abs())
    return found / wanted if wanted > 0.0 and found > 0.0 else 1.0


def _per_realised(step: Step, share: float) -> Step:
    """``step`` per unit of the realised displacement."""
    return Step(step.h, step.slope / share, step.residual / share, step.noise / share)

"""One pair (v, u): what a claimed gradient predicts along u, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass

#: Disagreement reported as information must exceed the error bar this many times (heuristic).
CLEARLY = 10.0

#: No run resolves more than float64 holds, however lucky its rounding.
FINEST = 2.0**-52


@dataclass
class Pair:
    """One pair (v, u) judged.

    Args:
        kind: kind of direction.
        claimed: ⟨g, u⟩, the slope that the claimed gradient predicts.
        measured: the slope measured.
        bar: error bar of the difference between the two.
        sigma: one standard deviation of the measurement.
        scale: ‖g∘u‖₂, floored by a share of the outputs where the gradient is next to nothing.
        h: step used; 0 where no step was usable.
        top: max|gᵢuᵢ|, the worth of the largest single element.
        method: "sweep" (differences) or "path" (path integral).
        worth: ‖g∘u‖₂, or the measured slope where that is larger; 0 where both are.
        tolerated: share of ``scale`` by which the claimed slope may be off and not be called wrong.
    """

    kind: str
    claimed: float = 0.0
    measured: float = 0.0
    bar: float = float("inf")
    sigma: float = 0.0
    scale: float = 0.0
    h: float = 0.0
    top: float = 0.0
    method: str = "sweep"
    worth: float = 0.0
    tolerated: float = 0.0

    @property
    def error(self) -> float:
        """|measured − claimed|."""
        return abs(self.measured - self.claimed)

    @property
    def relative_error(self) -> float:
        """:attr:`error` relative to the gradient, as :attr:`resolution` is; inf where that is 0."""
        return self.error / self.worth if self.worth > 0.0 else float("inf")

    @property
    def sharpness(self) -> float:
        """The error bar relative to :attr:`scale`."""
        if self.scale > 0.0:
            return max(self.bar / self.scale, FINEST)
        # Nothing moves and nothing is claimed: cotangents and moves are of order one, and so the
        # error bar is what an error would be compared with.
        return max(self.bar, FINEST) if self.h > 0.0 else float("inf")

    @property
    def resolution(self) -> float:
        """Smallest error relative to the gradient that this pair would have reported; above 1
        where the gradient is nothing but rounding beside the outputs."""
        if self.worth <= 0.0 or self.h <= 0.0:
            return self.sharpness
        seen = min(CLEARLY * self.bar, self.bar + self.tolerated * self.scale)
        return max(seen / self.worth, FINEST)

    @property
    def clarity(self) -> float:
        """The disagreement in units of its error bar; 0 where nothing was measured."""
        if self.h <= 0.0 or self.error == 0.0:
            return 0.0
        return self.error / self.bar if self.bar > 0.0 else float("inf")

    @property
    def differs(self) -> bool:
        """Whether the disagreement is beyond the error bar and what is tolerated."""
        return self.h > 0.0 and self.error > self.bar + self.tolerated * self.scale

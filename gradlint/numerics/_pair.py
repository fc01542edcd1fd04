"""One pair (v, u): what a claimed gradient predicts along u, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass

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
        scale: ‖g∘u‖₂, floored where the gradient is zero.
        h: step used; 0 where no step was usable.
        top: max|gᵢuᵢ|, the worth of the largest single element.
        method: "sweep" (differences) or "path" (path integral).
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

    @property
    def error(self) -> float:
        """|measured − claimed|."""
        return abs(self.measured - self.claimed)

    @property
    def resolution(self) -> float:
        """Smallest relative error of the gradient that this pair would have seen."""
        if self.scale > 0.0:
            return max(self.bar / self.scale, FINEST)
        # Nothing moves and nothing is claimed: cotangents and moves are of order one, and so the
        # error bar is what an error would be compared with.
        return max(self.bar, FINEST) if self.h > 0.0 else float("inf")

    @property
    def clarity(self) -> float:
        """The disagreement in units of its error bar; 0 where nothing was measured."""
        if self.h <= 0.0 or self.error == 0.0:
            return 0.0
        return self.error / self.bar if self.bar > 0.0 else float("inf")

    def differs(self, tolerated: float) -> bool:
        """Whether the disagreement is beyond the error bar and what is tolerated."""
        return self.h > 0.0 and self.error > self.bar + tolerated * self.scale

"""One pair (v, u): the slope that a claimed gradient predicts along u, and the one measured."""

from __future__ import annotations

from dataclasses import dataclass

#: A disagreement reported as information exceeds the error bar by this factor (heuristic).
CLEARLY = 10.0

#: Resolving power is never stated below float64's own resolution, however lucky the rounding.
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
        scale: ‖g∘u‖₂, or a share of the outputs if the gradient is negligible compared with them.
        h: step used; 0 if no step was usable.
        top: max|gᵢuᵢ|, the contribution of the largest single element.
        method: "sweep" (differences) or "path" (path integral).
        worth: ‖g∘u‖₂, or the measured slope if that is larger; 0 if both are.
        tolerated: share of ``scale`` by which the claimed slope may be off without being wrong.
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
        # Nothing moves and nothing is claimed. Cotangents and moves are of order one, so the error
        # bar itself is the relative one.
        return max(self.bar, FINEST) if self.h > 0.0 else float("inf")

    @property
    def resolution(self) -> float:
        """Smallest error, relative to the gradient, that this pair would have reported; above 1 if
        the gradient is smaller than the rounding of the outputs."""
        if self.worth <= 0.0 or self.h <= 0.0:
            return self.sharpness
        seen = min(CLEARLY * self.bar, self.bar + self.tolerated * self.scale)
        return max(seen / self.worth, FINEST)

    @property
    def clarity(self) -> float:
        """The disagreement in units of its error bar; 0 if nothing was measured."""
        if self.h <= 0.0 or self.error == 0.0:
            return 0.0
        return self.error / self.bar if self.bar > 0.0 else float("inf")

    @property
    def differs(self) -> bool:
        """Whether the disagreement exceeds the error bar plus what is tolerated."""
        return self.h > 0.0 and self.error > self.bar + self.tolerated * self.scale

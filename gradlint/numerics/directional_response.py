"""J·u along one direction, kept so that slopes under any cotangent cost no further calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.differences import LADDER, Estimate, Step, estimate, noise_of
from gradlint.numerics.elements import Change, Residuals


@dataclass
class Reaction:
    """How the outputs changed along one direction, at several steps.

    Args:
        u: the direction, in the shape of the input.
        changes: one per step.
        outputs: f at the point.
        rounding: as in :class:`gradlint.numerics.map.Map`.
        kappa: factor by which the noise exceeds the ulp model.
    """

    u: torch.Tensor
    changes: list[Change]
    outputs: Sequence[torch.Tensor]
    rounding: Sequence[float] | None
    kappa: float

    def unexplained(
        self, cotangents: Sequence[torch.Tensor], claimed: torch.Tensor
    ) -> Estimate | None:
        """The slope that ``claimed`` leaves unexplained under ``cotangents``, or None."""
        noise = noise_of(cotangents, self.outputs, self.outputs, self.rounding)
        taken: list[Step | None] = [
            change.step(cotangents, claimed, noise) for change in self.changes
        ]
        return estimate([step for step in taken if step is not None], self.kappa)

    def derivative(self, output: int) -> tuple[torch.Tensor, torch.Tensor]:
        """J·u for one output at the finest step, and as error bar of each element its difference
        from the next coarser step."""
        coarse, fine = self.changes[-2], self.changes[-1]
        first = coarse.outputs[output] / (2.0 * coarse.h)
        second = fine.outputs[output] / (2.0 * fine.h)
        return second, (second - first).abs()


def react(residuals: Residuals, u: torch.Tensor) -> Reaction | None:
    """Move along ``u`` at every step of the ladder; None if fewer than three steps are possible."""
    changes = [
        change
        for e in LADDER[residuals.bits]
        if (change := residuals.change(u, 2.0**-e)) is not None
    ]
    if len(changes) < 3:
        return None
    function = residuals.function
    return Reaction(u, changes, function.outputs, function.rounding, residuals.kappa)

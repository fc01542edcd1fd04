"""J·u along one direction, kept: slopes under any cotangent, without further calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.differences import LADDER, Estimate, Step, estimate, noise_of
from gradlint.numerics.elements import Change, Residuals


@dataclass
class Reaction:
    """What the outputs did along one direction, at several steps.

    Args:
        u: the direction, shape of the input.
        changes: one a step.
        outputs: f at the point.
        rounding: as in the map.
        kappa: factor by which noise exceeds the ulp model.
    """

    u: torch.Tensor
    changes: list[Change]
    outputs: Sequence[torch.Tensor]
    rounding: Sequence[float] | None
    kappa: float

    def unexplained(
        self, cotangents: Sequence[torch.Tensor], claimed: torch.Tensor
    ) -> Estimate | None:
        """What ``claimed`` leaves of the slope under ``cotangents``, with its error bar."""
        noise = noise_of(cotangents, self.outputs, self.outputs, self.rounding)
        taken: list[Step | None] = [
            change.step(cotangents, claimed, noise) for change in self.changes
        ]
        return estimate([step for step in taken if step is not None], self.kappa)

    def derivative(self, output: int) -> tuple[torch.Tensor, torch.Tensor]:
        """J·u for one output, by extrapolation of the two finest steps, and an error bar for each
        element: what the extrapolation changed."""
        coarse, fine = self.changes[-2], self.changes[-1]
        first = coarse.outputs[output] / (2.0 * coarse.h)
        second = fine.outputs[output] / (2.0 * fine.h)
        return second, (second - first).abs()


def react(residuals: Residuals, u: torch.Tensor) -> Reaction | None:
    """Move along ``u`` at every step of the ladder; None where fewer than three can be taken."""
    changes = [
        change
        for e in LADDER[residuals.bits]
        if (change := residuals.change(u, 2.0**-e)) is not None
    ]
    if len(changes) < 3:
        return None
    function = residuals.function
    return Reaction(u, changes, function.outputs, function.rounding, residuals.kappa)

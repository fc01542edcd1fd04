"""What comes of one forward and one backward at a sample."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gradlint.inputs._attempt import process_state_restored, run
from gradlint.inputs.values import Built
from gradlint.model.op import Op
from gradlint.model.sample import Sample


@dataclass(frozen=True)
class Tried:
    """What came of it.

    Args:
        score: 0 forward raised, 1 no output requires grad, 2 outputs are not finite, 3 backward
            raised, 4 gradients are not finite or all zero, 5 some gradient is zero or missing,
            6 everything went well.
        zero: how many gradients are zero or missing.
        error: what was raised, and "" if nothing was.
    """

    score: int
    zero: int
    error: str = ""

    @property
    def runs(self) -> bool:
        """Whether forward ran."""
        return self.score > 0

    def as_good_as(self, other: Tried) -> bool:
        """Whether as much went well as with ``other``."""
        return self.score >= other.score and (self.score != other.score or self.zero <= other.zero)


def tried(op: Op, sample: Sample, seed: int) -> Tried:
    """Run ``op`` once on copies of the arguments in ``sample``, and backward if it can be."""
    floating = (t for _, t in sample.named_tensors(None) if t.is_floating_point())
    wide = all(tensor.dtype == torch.float64 for tensor in floating)
    with process_state_restored():
        working = "float64" if wide else "float32"
        trial = run(op, Built(sample.args, sample.kwargs), working, seed)
    return Tried(trial.score, trial.zero, str(trial.failure or ""))

"""Does the claimed gradient predict what the function really does?

:func:`judge` draws pairs (v, u) for a :class:`Map`, measures the slope along u that the claimed
gradient leaves unexplained, with an error bar, and decides for each input: agrees, differs, or
can't tell. The same code judges first derivatives (x ↦ f(x)) and second ones ((x, v) ↦ VJP(v)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics._bank import Bank, Probe
from gradlint.numerics._differences import LADDER
from gradlint.numerics._directions import KINDS
from gradlint.numerics._map import Map, Projection, along, working_bits
from gradlint.numerics._pair import CLEARLY, Pair
from gradlint.numerics._trial import Trial
from gradlint.numerics._verdict import (
    AGREES,
    DIFFERS,
    HONEST,
    ROUNDED,
    TOLERATED,
    UNRESOLVED,
    UNSURE,
    InputJudgement,
)
from gradlint.numerics._worth import SHARE_OF_OUTPUT

__all__ = [
    "AGREES",
    "CLEARLY",
    "DIFFERS",
    "HONEST",
    "ROUNDED",
    "SHARE_OF_OUTPUT",
    "TOLERATED",
    "UNRESOLVED",
    "UNSURE",
    "InputJudgement",
    "Judgement",
    "Map",
    "Pair",
    "Probe",
    "Projection",
    "along",
    "judge",
    "working_bits",
]

#: Where every pair agrees this closely (error bar relative to ‖g∘u‖, by significand bits) at one
#: step, no ladder of steps is climbed (heuristic: float32's rounding in float64, so that a cast
#: inside is looked at more closely; truncation, noise and an error would have to cancel in each of
#: the pairs).
GLANCED = {53: 2.0**-24, 24: 3e-5, 11: 7e-3, 8: 3e-2}


#: Draws of the first look: one along the gradient, one random, and one that gives small elements
#: their weight; a wrong gradient would have to agree with all of them to a float32's rounding.
GLANCED_DRAWS = 3


@dataclass
class Judgement:
    """Verdicts on every input of a map, and the draws that they rest on."""

    inputs: list[InputJudgement]
    bank: Bank

    def probe(self, k: int) -> Probe:
        """Draw number ``k``: cotangents, claimed gradients and directions; made again where
        tensors are large."""
        return self.bank.probe(k)

    @property
    def cotangents(self) -> list[list[torch.Tensor]]:
        """The cotangents of every draw."""
        return [self.probe(k).cotangents for k in range(len(self.bank))]

    @property
    def gradients(self) -> list[list[torch.Tensor]]:
        """The claimed gradients of every draw."""
        return [self.probe(k).gradients for k in range(len(self.bank))]

    @property
    def resolution(self) -> float:
        """The worst resolving power among the inputs."""
        return max((item.resolution for item in self.inputs), default=float("inf"))


def judge(
    function: Map,
    *,
    seed: int,
    kinds: Sequence[str] = KINDS,
    inputs: Sequence[int] | None = None,
    masks: Sequence[torch.Tensor | None] | None = None,
    exponents: Sequence[int] | None = None,
) -> Judgement:
    """Judge the claimed VJP of ``function`` at its point.

    Args:
        seed: of cotangents and directions.
        kinds: kinds of direction, one pair (v, u) each.
        inputs: positions of the inputs to judge; default all.
        masks: for each output, True where its elements may be used (kinks masked out), or None.
        exponents: of the steps 2^−e; default those that suit the dtype, and more as needed.
    """
    wanted = list(range(len(function.values)) if inputs is None else inputs)
    bank = Bank(function, kinds, seed, wanted, masks)
    trials = [Trial(bank, index) for index in wanted]
    if exponents is None:
        _glance(trials)
    _climb(trials, lambda trial: exponents or LADDER[trial.bits])
    if exponents is None:
        _climb(trials, lambda trial: trial.further()[0])
        _climb(trials, lambda trial: trial.further()[1])
        _climb(trials, Trial.finest)
        _walk_paths(trials)
    return Judgement([trial.conclude() for trial in trials], bank)


def _glance(trials: Sequence[Trial]) -> None:
    """One measurement along every draw: where all of them agree closely, that settles it."""
    still = [trial for trial in trials if trial.open]
    for k in range(min(GLANCED_DRAWS, len(still[0].bank)) if still else 0):
        for trial in still:
            if k in trial.draws:
                trial.glance(k)
    for trial in still:
        trial.settled = (
            trial.finite
            and all(pair.sharpness <= GLANCED[trial.bits] for pair in trial.pairs)
            and all(pair.resolution <= HONEST[trial.bits] for pair in trial.pairs)
            and not trial.hides_elements
        )
        if not trial.settled:
            trial.pairs = []


def _climb(trials: Sequence[Trial], rungs_of: Callable[[Trial], Sequence[int]]) -> None:
    """Take further steps along every draw for the inputs that are still open."""
    still = [(trial, rungs) for trial in trials if trial.open and (rungs := rungs_of(trial))]
    if not still:
        return
    for k in range(len(still[0][0].bank)):
        for trial, rungs in still:
            if k in trial.draws:
                trial.take(k, rungs)
    for trial, _ in still:
        if trial.finite:
            trial.review()


def _walk_paths(trials: Sequence[Trial]) -> None:
    """Path integrals for the inputs of low precision that differences did not settle."""
    still = [trial for trial in trials if trial.bits < max(LADDER) and trial.open]
    if not still:
        return
    for k in range(len(still[0].bank)):
        for trial in still:
            if k in trial.draws:
                trial.walk(k)
    for trial in still:
        trial.review()

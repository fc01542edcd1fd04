"""Does the claimed gradient predict what the function really does?

:func:`judge` draws pairs (v, u) for a :class:`Map`, measures the slope along u that the claimed
gradient leaves unexplained, with an error bar, and decides for each input: agrees, differs, or
unsure. The same code judges first derivatives (x ↦ f(x)) and second ones ((x, v) ↦ VJP(v)). See
gradlint/docs/numerics.md, section "The measurement".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gradlint.numerics.bank import Bank, Probe
from gradlint.numerics.differences import (
    GLANCE,
    LADDER,
    LADDER_COARSER,
    LADDER_FINER,
    LADDER_FINEST,
    Estimate,
    Step,
    at_a_glance,
    best,
    compatible,
    difference,
    estimate,
    noise_factor,
    significand_bits,
)
from gradlint.numerics.directions import KINDS
from gradlint.numerics.gradient_scale import SHARE_OF_OUTPUT, Worth, weigh
from gradlint.numerics.map import Map, along, working_bits
from gradlint.numerics.pair import Pair
from gradlint.numerics.path import PATH_STEPS, path_at_a_glance, path_integral
from gradlint.numerics.products import unit_roundoff
from gradlint.numerics.verdict import (
    AGREES,
    DIFFERS,
    FEW_ROUNDINGS,
    MIN_RESOLUTION,
    SUSPECT,
    TOLERATED,
    UNSURE,
    InputJudgement,
    verdict,
)

#: A disagreement that exceeds its error bar this many times needs no further steps (heuristic).
BEYOND_DOUBT = 100.0

#: Draws for an input of one element. It has only one direction, so draws differ in their cotangents
#: alone, and in each of those every output counts.
SINGLE_ELEMENT_DRAWS = 2

#: If every pair agrees this closely at one step (error bar relative to ‖g∘u‖, by significand bits),
#: the ladder of steps is skipped (heuristic: in float64, less than float32's rounding, so that a
#: cast inside the op is examined; truncation, noise and an error would have to cancel in each
#: pair).
GLANCED = {53: 2.0**-24, 24: 3e-5, 11: 7e-3, 8: 3e-2}

#: Draws of that first measurement: one along the gradient, one random, and one that gives small
#: elements weight. A wrong gradient would have to agree with all of them to a float32's rounding.
GLANCED_DRAWS = 3


class Trial:
    """One input while it is judged: what was measured along each draw, and what follows from it.

    Args:
        bank: the draws.
        index: position of the input.
    """

    def __init__(self, bank: Bank, index: int) -> None:
        self.bank, self.index = bank, index
        x = bank.function.values[index]
        self.bits = working_bits(bank.function, x)
        self.unit = max(
            (unit_roundoff(y.dtype) for y in bank.function.outputs), default=unit_roundoff(x.dtype)
        )
        self.tolerated = TOLERATED[self.bits]
        if significand_bits(x.dtype) > self.bits:
            self.tolerated = min(self.tolerated, FEW_ROUNDINGS * 2.0**-self.bits)
        self.empty = x.numel() == 0
        self.draws = range(
            len(bank.kinds) if x.numel() > 1 else min(SINGLE_ELEMENT_DRAWS, len(bank.kinds))
        )
        self.finite = True
        self.ladders: list[list[Step]] = [[] for _ in bank.kinds]
        self.paths: list[list[Estimate]] = [[] for _ in bank.kinds]
        self.worth: dict[int, Worth] = {}
        self.kappa = 1.0
        self.pairs: list[Pair] = []
        self.settled = False
        self._first_finer: bool | None = None

    @property
    def open(self) -> bool:
        """Whether further measurements could change or sharpen the verdict."""
        if self.empty or self.settled or not self.finite:
            return False
        return not self.pairs or self.hides_elements or any(map(self._doubtful, self.pairs))

    @property
    def hides_elements(self) -> bool:
        """Whether no pair so far would have seen a single wrong element."""
        return self._found().hides_elements

    def _doubtful(self, pair: Pair) -> bool:
        if not (pair.sharpness <= self.tolerated and pair.resolution <= MIN_RESOLUTION[self.bits]):
            return True
        return pair.differs and pair.clarity < BEYOND_DOUBT

    def further(self) -> tuple[Sequence[int], Sequence[int]]:
        """Two sets of further steps, the more promising first: the finer ones if the residuals
        still fell from the second finest step to the finest, the coarser ones if noise grew."""
        finer, coarser = LADDER_FINER[self.bits], LADDER_COARSER[self.bits]
        ends = [steps[-2:] for steps in self.ladders if len(steps) > 1]
        falling = sum(abs(fine.residual) < abs(coarse.residual) for coarse, fine in ends)
        if self._first_finer is None:
            self._first_finer = 2 * falling > len(ends)
        return (finer, coarser) if self._first_finer else (coarser, finer)

    def finest(self) -> Sequence[int]:
        """The finest steps, if the noise suggests that no step so far resolves the function."""
        suspicious = self.kappa * self.unit >= SUSPECT
        return LADDER_FINEST.get(self.bits, ()) if suspicious else ()

    def glance(self, k: int) -> None:
        """Measure draw ``k`` once: by one difference in float64, else by a short path integral."""
        probe = self.bank.probe(k)
        self._weigh(k, probe)
        if not self.finite:
            return
        if self.bits in GLANCE:
            step = self._step(probe, GLANCE[self.bits])
            found = at_a_glance(step) if step is not None else None
        else:
            function, index = self.bank.function, self.index
            moved, h = probe.moves[index], PATH_STEPS[-1]
            found = path_at_a_glance(function, index, moved, probe.cotangents, h)
        self.pairs.append(self._pair(k, found, "sweep" if self.bits in GLANCE else "path"))

    def take(self, k: int, exponents: Sequence[int]) -> None:
        """Measure along draw ``k`` with steps 2^−e."""
        probe = self.bank.probe(k)
        self._weigh(k, probe)
        if not self.finite:
            return
        steps = [self._step(probe, exponent) for exponent in exponents]
        self.ladders[k] += [step for step in steps if step is not None]
        self.ladders[k].sort(key=lambda step: -step.h)

    def _step(self, probe: Probe, exponent: int) -> Step | None:
        function, index = self.bank.function, self.index
        return difference(
            along(function, index),
            function.values[index],
            probe.moves[index],
            probe.cotangents,
            probe.gradients[index],
            2.0**-exponent,
            function.rounding,
        )

    def walk(self, k: int) -> None:
        """Measure draw ``k`` by path integrals."""
        probe = self.bank.probe(k)
        for h in PATH_STEPS:
            found = path_integral(
                self.bank.function,
                self.index,
                probe.moves[self.index],
                probe.cotangents,
                h,
                kappa=self.kappa,
            )
            if found is not None:
                self.paths[k].append(found)

    def review(self) -> None:
        """Update the noise factor and the pairs from everything measured so far."""
        self.kappa = noise_factor(self.ladders)
        self.pairs = [self._pair(k, *self._measured(k)) for k in self.draws]

    def conclude(self) -> InputJudgement:
        """The verdict."""
        if not self.finite:
            return InputJudgement(self.index, UNSURE)
        found = self._found()
        if not self.empty:
            found.verdict = verdict(found, self.worth, self.bits, self.unit)
        return found

    def _found(self) -> InputJudgement:
        return InputJudgement(self.index, AGREES, self.pairs, self.kappa)

    def _weigh(self, k: int, probe: Probe) -> None:
        if k not in self.worth:
            self.worth[k] = weigh(self.bank.function, self.index, probe, self.bits, self.unit)
            self.finite = self.finite and self.worth[k].finite

    def _walked(self, k: int, sweep: Estimate | None) -> Estimate | None:
        """The best path integral that agrees with the sweep; without a sweep, two must agree."""
        paths = self.paths[k]
        if sweep is not None:
            paths = [*paths, sweep]
        elif len(paths) < 2:
            return None
        return best([one for one in paths if all(compatible(one, other) for other in paths)])

    def _measured(self, k: int) -> tuple[Estimate | None, str]:
        """The best measurement along draw ``k``, and the method that made it."""
        sweep = estimate(self.ladders[k], self.kappa)
        path = self._walked(k, sweep)
        if path is not None and (sweep is None or path.bar < sweep.bar):
            return path, "path"
        return sweep, "sweep"

    def _pair(self, k: int, found: Estimate | None, method: str) -> Pair:
        kind, worth = self.bank.kinds[k], self.worth[k]
        if found is None:
            return Pair(kind)
        scale = max(worth.product, abs(found.slope), SHARE_OF_OUTPUT[self.bits] * worth.weighed)
        bar = found.bar
        reach = max((step.h for step in self.ladders[k]), default=found.h)
        if found.slope == 0.0 and abs(found.residual) * reach <= worth.rounding:
            bar = max(bar, abs(found.residual))
        return Pair(
            kind,
            claimed=found.slope - found.residual,
            measured=found.slope,
            bar=bar,
            sigma=found.sigma,
            scale=scale,
            h=found.h,
            top=worth.top,
            method=method,
            worth=max(worth.product, abs(found.slope)),
            tolerated=self.tolerated,
        )


@dataclass
class Judgement:
    """The verdicts on every input of a map, and the draws that they are based on."""

    inputs: list[InputJudgement]
    bank: Bank

    def probe(self, k: int) -> Probe:
        """Draw number ``k``: cotangents, claimed gradients and directions; drawn anew if tensors
        are large."""
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
        seed: seed of cotangents and directions.
        kinds: kinds of direction, one pair (v, u) each.
        inputs: positions of the inputs to judge; default all.
        masks: for each output, True for the elements that may be used (without a kink), or None.
        exponents: exponents e of the steps 2^−e; by default those of the dtype, more as needed.
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


def outputs_that_differ(
    function: Map, index: int, *, seed: int, kinds: Sequence[str] = KINDS
) -> list[int]:
    """Positions of the outputs whose share of the gradient of input ``index`` is wrong.

    Each output is judged by itself, with the others masked.

    Args:
        seed: seed of cotangents and directions.
        kinds: kinds of direction.
    """
    found = []
    for chosen in range(len(function.outputs)):
        masks = [
            torch.full(y.shape, place == chosen, dtype=torch.bool, device=y.device)
            for place, y in enumerate(function.outputs)
        ]
        judged = judge(function, seed=seed, kinds=kinds, inputs=[index], masks=masks)
        if judged.inputs[0].verdict == DIFFERS:
            found.append(chosen)
    return found


def _glance(trials: Sequence[Trial]) -> None:
    """Measure once along every draw; if all of them agree closely, no more is needed."""
    still = [trial for trial in trials if trial.open]
    for k in range(min(GLANCED_DRAWS, len(still[0].bank)) if still else 0):
        for trial in still:
            if k in trial.draws:
                trial.glance(k)
    for trial in still:
        trial.settled = (
            trial.finite
            and all(pair.sharpness <= GLANCED[trial.bits] for pair in trial.pairs)
            and all(pair.resolution <= MIN_RESOLUTION[trial.bits] for pair in trial.pairs)
            and not trial.hides_elements
        )
        if not trial.settled:
            trial.pairs = []


def _climb(trials: Sequence[Trial], rungs_of: Callable[[Trial], Sequence[int]]) -> None:
    """Take further steps along every draw for the inputs that are still undecided."""
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
    """Path integrals for the inputs of low precision that differences did not decide."""
    still = [trial for trial in trials if trial.bits < max(LADDER) and trial.open]
    if not still:
        return
    for k in range(len(still[0].bank)):
        for trial in still:
            if k in trial.draws:
                trial.walk(k)
    for trial in still:
        trial.review()

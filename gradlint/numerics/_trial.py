"""One input while it is judged: what was measured along each draw, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics._bank import Bank, Probe
from gradlint.numerics._differences import (
    GLANCE,
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
from gradlint.numerics._map import along, working_bits
from gradlint.numerics._pair import CLEARLY, Pair
from gradlint.numerics._path import PATH_STEPS, path_at_a_glance, path_integral
from gradlint.numerics._products import norm, unit_roundoff, widened

#: Relative to ‖g∘u‖: disagreement below this is no wrong gradient but a constant written with
#: few digits, an ε left out of backward, or rounding inside backward (heuristic; by significand
#: bits). It is reported as information where the error bar resolves it, unless it comes from few
#: elements alone (see ``_decide``).
TOLERATED = {53: 1e-6, 24: 1e-3, 11: 2e-2, 8: 1e-1}

#: Where only the outputs are of low precision and the input is not, the op rounds once or a few
#: times, and no more than this many units of its output's precision are tolerated (heuristic).
FEW_ROUNDINGS = 4.0

#: A pass needs this relative resolving power at least; otherwise "can't tell".
HONEST = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}

#: "Noise" between this share of float64 outputs and :data:`SUSPECT` is that of float32 inside, and
#: what is honest for float32 suffices (heuristic: a tenth of its spacing, to leave room for
#: averaging).
SINGLE_PRECISION = 0.1 * 2.0**-23

#: A pass needs one pair whose error bar is below this share of the largest element of g∘u:
#: otherwise a single wrong element among so many would not be seen (heuristic: an element of a
#: tenth of the largest counts).
ELEMENT_SHARE = 0.1

#: A disagreement that exceeds its error bar this many times needs no further steps (heuristic).
BEYOND_DOUBT = 100.0

#: "Noise" beyond this share of the outputs is no rounding: even the finest steps do not resolve the
#: function (it oscillates, or has a pole, within them), and nothing can be told. By significand
#: bits; heuristic: in bfloat16 κ stays below 8 (share 0.06) on ordinary operators and is beyond 100
#: for sin(30·x); in float64 the share is 1e-7 for float32 inside and 0.007 for sin(1e9·x).
UNRESOLVED = {53: 1e-3, 24: 1.0 / 64.0, 11: 1.0 / 32.0, 8: 1.0 / 8.0}

#: "Noise" beyond this share of float64 outputs calls for finer steps (heuristic: float32 inside
#: float64 has 1e-7 to 1e-6).
SUSPECT = 1e-5

#: A float64 gradient of at least this many roundings of the outputs is no rounding itself, and is
#: judged by its own size however small it is beside them (heuristic: a right one may lose some
#: digits where backward cancels what forward adds).
OWN_DIGITS = 1e4

#: Where the claimed gradient is zero, resolving power is stated relative to this share of ‖v∘f‖.
SHARE_OF_OUTPUT = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}

#: An input of one element has one direction: draws differ in their cotangents alone, in each of
#: which every output counts.
LONE_DRAWS = 2

AGREES, DIFFERS, UNSURE, ROUNDED = "agrees", "differs", "unsure", "rounded"


@dataclass
class InputJudgement:
    """The verdict on one input: :data:`AGREES`, :data:`DIFFERS`, :data:`UNSURE` or
    :data:`ROUNDED` (agrees, but only to fewer digits than this run resolves). ``kappa`` is the
    factor by which the measured noise exceeds one rounding of the outputs."""

    index: int
    verdict: str = AGREES
    pairs: list[Pair] = field(default_factory=list)
    kappa: float = 1.0

    @property
    def resolution(self) -> float:
        """Median resolving power of the usable pairs; inf where none was usable."""
        return _median([pair.resolution for pair in self.pairs if pair.h > 0.0])

    @property
    def sharpness(self) -> float:
        """Median error bar of the usable pairs, relative to the gradient or a share of the
        outputs; inf where none was usable."""
        return _median([pair.sharpness for pair in self.pairs if pair.h > 0.0])

    @property
    def element_resolution(self) -> float:
        """The share of the largest |gᵢuᵢ| by which a single element must be wrong to be seen."""
        return min((pair.bar / pair.top for pair in self.pairs if pair.top > 0.0), default=0.0)

    @property
    def worst(self) -> Pair:
        """The pair with the largest disagreement in units of its error bar."""
        return max(self.pairs, key=lambda pair: pair.clarity, default=Pair("none"))


def _median(found: list[float]) -> float:
    return sorted(found)[len(found) // 2] if found else float("inf")


@dataclass
class _Worth:
    """What a gradient is worth along one direction: ‖g∘u‖, max|g∘u| (or, where the gradient is
    nothing beside the outputs, a share of those), ‖v∘f‖, and what one rounding of outputs of
    order one would be worth: where a function does not change at all, and is claimed to change by
    less, it may have lost it in numbers of order one (1 − erf(x), say)."""

    product: float = 0.0
    top: float = 0.0
    weighed: float = 0.0
    rounding: float = 0.0


class Trial:
    """One input while it is judged."""

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
        self.draws = range(len(bank.kinds) if x.numel() > 1 else min(LONE_DRAWS, len(bank.kinds)))
        self.finite = True
        self.ladders: list[list[Step]] = [[] for _ in bank.kinds]
        self.paths: list[list[Estimate]] = [[] for _ in bank.kinds]
        self.worth: dict[int, _Worth] = {}
        self.kappa = 1.0
        self.pairs: list[Pair] = []
        self.settled = False
        self._first_finer: bool | None = None

    @property
    def open(self) -> bool:
        """Whether further measurements could change or sharpen the verdict."""
        if self.empty or self.settled or not self.finite:
            return False
        return not self.pairs or self.hides_elements() or any(map(self._doubtful, self.pairs))

    def _doubtful(self, pair: Pair) -> bool:
        if not (pair.sharpness <= self.tolerated and pair.resolution <= HONEST[self.bits]):
            return True
        return pair.differs and pair.clarity < BEYOND_DOUBT

    def further(self) -> tuple[Sequence[int], Sequence[int]]:
        """Further steps, those first that promise more: the finer ones where the residuals still
        fell from the second finest step to the finest, the coarser ones where noise grew."""
        finer, coarser = LADDER_FINER[self.bits], LADDER_COARSER[self.bits]
        ends = [steps[-2:] for steps in self.ladders if len(steps) > 1]
        falling = sum(abs(fine.residual) < abs(coarse.residual) for coarse, fine in ends)
        if self._first_finer is None:
            self._first_finer = 2 * falling > len(ends)
        return (finer, coarser) if self._first_finer else (coarser, finer)

    def finest(self) -> Sequence[int]:
        """The finest steps, where noise suggests that the function is not resolved."""
        suspicious = self.kappa * self.unit >= SUSPECT
        return LADDER_FINEST.get(self.bits, ()) if suspicious else ()

    def glance(self, k: int) -> None:
        """Measure draw ``k`` once: one difference in float64, one short path integral below."""
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
        """Draw the pairs from all that was measured."""
        self.kappa = noise_factor(self.ladders)
        self.pairs = [self._pair(k, *self._measured(k)) for k in self.draws]

    def conclude(self) -> InputJudgement:
        """The verdict."""
        if not self.finite:
            return InputJudgement(self.index, UNSURE)
        found = InputJudgement(self.index, AGREES, self.pairs, self.kappa)
        if not self.empty:
            found.verdict = self._verdict(found)
        return found

    def _verdict(self, found: InputJudgement) -> str:
        if self.kappa * self.unit > UNRESOLVED[self.bits]:
            return UNSURE
        if any(pair.differs or self._wrong_by_itself(k) for k, pair in enumerate(self.pairs)):
            return DIFFERS
        single = self.bits > 24 and SINGLE_PRECISION < self.kappa * self.unit < SUSPECT
        honest = HONEST[24 if single else self.bits]
        if not max(found.sharpness, found.resolution) <= honest or self.hides_elements():
            return UNSURE
        if any(pair.h > 0.0 and pair.error > CLEARLY * pair.bar for pair in self.pairs):
            return ROUNDED
        return AGREES

    def _wrong_by_itself(self, k: int) -> bool:
        """Whether draw ``k`` disagrees beyond doubt, by a share of the gradient that no pass may
        leave open, though it is nothing beside the outputs."""
        pair, worth = self.pairs[k], self.worth[k]
        if self.bits < 53 or pair.h <= 0.0 or pair.error <= CLEARLY * pair.bar:
            return False
        rounding = self.kappa * self.unit * worth.weighed
        return pair.worth > OWN_DIGITS * rounding and pair.error > HONEST[53] * pair.worth

    def hides_elements(self) -> bool:
        usable = [pair for pair in self.pairs if pair.h > 0.0 and pair.top > 0.0]
        return bool(usable) and all(pair.bar > ELEMENT_SHARE * pair.top for pair in usable)

    def _weigh(self, k: int, probe: Probe) -> None:
        if k in self.worth:
            return
        function = self.bank.function
        gradient, move = widened(probe.gradients[self.index]), probe.moves[self.index]
        products = gradient * move
        # Zero tensors of autograd's own hold no memory to write to.
        fresh = products.is_complex() or products._is_zerotensor()
        products = products.abs() if fresh else products.abs_()
        top = float(products.max()) if products.numel() else 0.0
        self.finite = self.finite and top < float("inf")  # false for NaN too
        known = function.rounding or [0.0] * len(function.outputs)
        weighed = sum(
            norm(widened(v) * torch.nan_to_num(widened(y)))
            + (norm(v) * sigma / unit_roundoff(y.dtype) if sigma > 0.0 else 0.0)
            for v, y, sigma in zip(probe.cotangents, function.outputs, known, strict=True)
        )
        outputs = sum(y.numel() for y in function.outputs)
        floor = SHARE_OF_OUTPUT[self.bits] * weighed / math.sqrt(max(outputs, 1))
        rounding = self.unit * math.hypot(*(norm(v) for v in probe.cotangents))
        self.worth[k] = _Worth(norm(products), max(top, floor), weighed, rounding)

    def _walked(self, k: int, sweep: Estimate | None) -> Estimate | None:
        """The best path integral that the sweep bears out; without a sweep, two must agree."""
        paths = self.paths[k]
        if sweep is not None:
            paths = [*paths, sweep]
        elif len(paths) < 2:
            return None
        return best([one for one in paths if all(compatible(one, other) for other in paths)])

    def _measured(self, k: int) -> tuple[Estimate | None, str]:
        """The best measurement along draw ``k``, and how it was made."""
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

"""The verdict on one input from the pairs measured for it, and the limits that decide it.

See gradlint/docs/numerics.md, section "Verdict".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradlint.numerics.gradient_scale import Worth
from gradlint.numerics.pair import CLEARLY, Pair

#: A disagreement below this share of ‖g∘u‖ (by significand bits) does not count as a wrong gradient
#: but as a constant written with few digits, an ε left out of backward, or rounding inside backward
#: (heuristic). If the error bar resolves it, it is reported as information, unless few elements
#: alone cause it (see :func:`gradlint.numerics.decide.concentrated`).
TOLERATED = {53: 1e-6, 24: 1e-3, 11: 2e-2, 8: 1e-1}

#: If only the outputs are of low precision and the input is not, the op rounds once or a few times,
#: and only this many units of its output's precision are tolerated (heuristic).
FEW_ROUNDINGS = 4.0

#: A pass needs at least this relative resolving power, by significand bits; otherwise the verdict
#: is "unsure" (heuristic: 3 digits in float64, less where the dtype has fewer).
MIN_RESOLUTION = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}

#: If the noise lies between this share of float64 outputs and :data:`SUSPECT`, the op computes in
#: float32, and the resolution demanded of float32 suffices (heuristic: a tenth of the spacing of
#: float32, since averaging reduces noise).
SINGLE_PRECISION = 0.1 * 2.0**-23

#: A pass needs one pair whose error bar is below this share of the largest element of g∘u;
#: otherwise a single wrong element would go unnoticed (heuristic: elements down to a tenth of the
#: largest one matter).
ELEMENT_SHARE = 0.1

#: "Noise" beyond this share of the outputs (by significand bits) is not rounding: the function
#: oscillates or has a pole within even the finest steps, and no verdict is possible. Heuristic: in
#: bfloat16 κ stays below 8 (share 0.06) for ordinary operators and exceeds 100 for sin(30·x); in
#: float64 the share is 1e-7 for an op that computes in float32 and 0.007 for sin(1e9·x).
UNRESOLVED = {53: 1e-3, 24: 1.0 / 64.0, 11: 1.0 / 32.0, 8: 1.0 / 8.0}

#: Noise beyond this share of float64 outputs calls for finer steps (heuristic: an op that computes
#: in float32 has 1e-7 to 1e-6).
SUSPECT = 1e-5

#: A float64 gradient of at least this many roundings of the outputs does not consist of rounding,
#: and is judged relative to its own size, however small compared with the outputs (heuristic: a
#: right gradient may lose some digits if backward cancels what forward adds).
OWN_DIGITS = 1e4

AGREES, DIFFERS, UNSURE, ROUNDED = "agrees", "differs", "unsure", "rounded"


@dataclass
class InputJudgement:
    """The verdict on one input.

    Args:
        index: position of the input.
        verdict: :data:`AGREES`, :data:`DIFFERS`, :data:`UNSURE` or :data:`ROUNDED` (agrees, but
            to fewer digits than this run resolves).
        pairs: what was measured.
        kappa: factor by which the measured noise exceeds one rounding of the outputs.
    """

    index: int
    verdict: str = AGREES
    pairs: list[Pair] = field(default_factory=list)
    kappa: float = 1.0

    @property
    def resolution(self) -> float:
        """Median resolving power of the usable pairs; inf if none was usable."""
        return _median([pair.resolution for pair in self.pairs if pair.h > 0.0])

    @property
    def sharpness(self) -> float:
        """Median error bar of the usable pairs, relative to the gradient or a share of the
        outputs; inf if none was usable."""
        return _median([pair.sharpness for pair in self.pairs if pair.h > 0.0])

    @property
    def element_resolution(self) -> float:
        """The share of the largest |gᵢuᵢ| by which a single element must be wrong to be noticed."""
        return min((pair.bar / pair.top for pair in self.pairs if pair.top > 0.0), default=0.0)

    @property
    def hides_elements(self) -> bool:
        """Whether no usable pair would have shown a single wrong element."""
        usable = [pair for pair in self.pairs if pair.h > 0.0 and pair.top > 0.0]
        return bool(usable) and all(pair.bar > ELEMENT_SHARE * pair.top for pair in usable)

    @property
    def worst(self) -> Pair:
        """The pair with the largest disagreement in units of its error bar."""
        return max(self.pairs, key=lambda pair: pair.clarity, default=Pair("none"))


def _median(found: list[float]) -> float:
    return sorted(found)[len(found) // 2] if found else float("inf")


def verdict(found: InputJudgement, worths: Mapping[int, Worth], bits: int, unit: float) -> str:
    """The verdict on an input.

    Args:
        found: the measured pairs and the noise.
        worths: the size of the gradient along each draw, by the draw's number.
        bits: significand bits of the lowest dtype involved.
        unit: roundoff of the coarsest output.
    """
    noise = found.kappa * unit
    if noise > UNRESOLVED[bits]:
        return UNSURE
    if any(pair.differs for pair in found.pairs):
        return DIFFERS
    by_itself = (_wrong_by_itself(p, worths[k], noise) for k, p in enumerate(found.pairs))
    if bits >= 53 and any(by_itself):
        return DIFFERS
    single = bits > 24 and SINGLE_PRECISION < noise < SUSPECT
    needed = MIN_RESOLUTION[24 if single else bits]
    if not max(found.sharpness, found.resolution) <= needed or found.hides_elements:
        return UNSURE
    if any(pair.h > 0.0 and pair.error > CLEARLY * pair.bar for pair in found.pairs):
        return ROUNDED
    return AGREES


def _wrong_by_itself(pair: Pair, worth: Worth, noise: float) -> bool:
    """Whether a float64 gradient that is tiny compared with the outputs nevertheless disagrees
    clearly, by more than a pass may leave unresolved of its own size."""
    if pair.h <= 0.0 or pair.error <= CLEARLY * pair.bar:
        return False
    return (
        pair.worth > OWN_DIGITS * noise * worth.weighed
        and pair.error > MIN_RESOLUTION[53] * pair.worth
    )

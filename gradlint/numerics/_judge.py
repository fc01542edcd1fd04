"""Does the claimed gradient predict what the function really does?

A :class:`Map` is the function under judgment together with its claimed VJP. :func:`judge` draws
pairs (v, u), measures the slope along u that the claimed gradient leaves unexplained, with an
error bar, and decides for each input: agrees, differs, or can't tell. The same code judges first
derivatives (x ↦ f(x)) and second ones ((x, v) ↦ VJP(v)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics._differences import (
    LADDER,
    LADDER_FINEST,
    LADDER_MORE,
    Estimate,
    Step,
    difference,
    estimate,
    noise_factor,
    significand_bits,
)
from gradlint.numerics._directions import KINDS, cotangent, direction, product_norm
from gradlint.numerics._pair import Pair
from gradlint.numerics._products import norm, unit_roundoff, widened

#: Relative to ‖g∘u‖: disagreement below this is no wrong gradient but a constant written with
#: few digits, an ε left out of backward, or rounding inside backward (heuristic; by significand
#: bits). It is reported as information where the error bar resolves it.
TOLERATED = {53: 1e-6, 24: 1e-3, 11: 2e-2, 8: 1e-1}

#: A pass needs this relative resolving power at least; otherwise "can't tell".
HONEST = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}

#: Disagreement reported as information must exceed the error bar this many times (heuristic).
CLEARLY = 10.0

#: "Noise" beyond this share of the outputs is no rounding: even the finest steps do not resolve the
#: function (it oscillates, or has a pole, within them), and nothing can be told. By significand
#: bits; heuristic: in bfloat16 κ stays below 8 (share 0.06) on ordinary operators and is beyond 100
#: for sin(30·x); in float64 the share is 1e-7 for float32 inside and 0.007 for sin(1e9·x).
UNRESOLVED = {53: 1e-3, 24: 1.0 / 64.0, 11: 1.0 / 8.0, 8: 1.0 / 8.0}

#: "Noise" beyond this share of float64 outputs calls for finer steps (heuristic: float32 inside
#: float64 has 1e-7 to 1e-6).
SUSPECT = 1e-5

#: Where the claimed gradient is zero, resolving power is stated relative to this share of ‖v∘f‖.
SHARE_OF_OUTPUT = {53: 1e-3, 24: 3e-2, 11: 1e-1, 8: 3e-1}

AGREES, DIFFERS, UNSURE, ROUNDED = "agrees", "differs", "unsure", "rounded"


#: Keeps a direction inside the domain of its input (symmetric matrices stay symmetric).
Projection = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Map:
    """A function of several tensors and its claimed VJP.

    Args:
        values: the point, one tensor an input.
        outputs: the outputs there.
        evaluate: outputs at other values; None where the function can't be evaluated.
        pull_at: one gradient an input at given values for given cotangents; None means "no
            dependence" (zero).
        rounding: standard deviation of the rounding error of an element of each output, where it
            is known to exceed that of a single rounding (gradients are sums that may cancel).
        project: for each input, what keeps directions inside its domain, or None.
    """

    values: list[torch.Tensor]
    outputs: list[torch.Tensor]
    evaluate: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor] | None]
    pull_at: Callable[
        [Sequence[torch.Tensor], Sequence[torch.Tensor]], Sequence[torch.Tensor | None]
    ]
    rounding: Sequence[float] | None = None
    project: Sequence[Projection | None] | None = None

    def projected(self, index: int, direction: torch.Tensor) -> torch.Tensor:
        """``direction`` for input ``index``, inside the input's domain."""
        project = self.project[index] if self.project else None
        return direction if project is None else project(direction)

    def pull(self, cotangents: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
        """The claimed VJP at the point itself."""
        return self.pull_at(self.values, cotangents)


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
        usable = sorted(pair.resolution for pair in self.pairs if pair.h > 0.0)
        return usable[len(usable) // 2] if usable else float("inf")

    @property
    def worst(self) -> Pair:
        """The pair with the largest disagreement in units of its error bar."""
        return max(
            self.pairs,
            key=lambda pair: pair.error / pair.bar if pair.bar else pair.error,
            default=Pair("none"),
        )


@dataclass
class Judgement:
    """Verdicts on every input of a map, and what they rest on."""

    inputs: list[InputJudgement]
    cotangents: list[list[torch.Tensor]]
    gradients: list[list[torch.Tensor]]

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
    generator = torch.Generator().manual_seed(seed)
    wanted = range(len(function.values)) if inputs is None else inputs
    cotangents, gradients = [], []
    for _ in kinds:
        vs = [cotangent(output, generator) for output in function.outputs]
        for position, mask in enumerate(masks or ()):
            if mask is not None:
                vs[position] = vs[position] * mask
        claimed = function.pull(vs)
        cotangents.append(vs)
        gradients.append(
            [
                torch.zeros_like(value) if grad is None else grad
                for value, grad in zip(function.values, claimed, strict=True)
            ]
        )
    results = [
        _judge_input(function, index, kinds, cotangents, gradients, generator, exponents)
        for index in wanted
    ]
    return Judgement(results, cotangents, gradients)


def _judge_input(
    function: Map,
    index: int,
    kinds: Sequence[str],
    cotangents: list[list[torch.Tensor]],
    gradients: list[list[torch.Tensor]],
    generator: torch.Generator,
    chosen: Sequence[int] | None,
) -> InputJudgement:
    x = function.values[index]
    bits = working_bits(function, x)
    result = InputJudgement(index)
    if x.numel() == 0:
        return result
    if not all(bool(torch.isfinite(widened(grads[index])).all()) for grads in gradients):
        return InputJudgement(index, UNSURE)
    evaluate = along(function, index)
    moves = [
        function.projected(index, direction(kind, x, grads[index], generator))
        for kind, grads in zip(kinds, gradients, strict=True)
    ]

    def climb(exponents: Sequence[int], k: int) -> list[Step]:
        taken = []
        for exponent in exponents:
            step = difference(
                evaluate,
                x,
                moves[k],
                cotangents[k],
                gradients[k][index],
                2.0**-exponent,
                function.rounding,
            )
            if step is not None:
                taken.append(step)
        return taken

    ladders = [climb(chosen or LADDER[bits], k) for k in range(len(kinds))]
    result.kappa = noise_factor(ladders)
    result.pairs = _pairs(
        function, index, kinds, cotangents, gradients, moves, ladders, result.kappa
    )
    for rungs in () if chosen else (LADDER_MORE[bits], LADDER_FINEST.get(bits, ())):
        if not rungs or not _unsettled(result.pairs, bits):
            break
        if rungs is not LADDER_MORE[bits] and result.kappa * 2.0 ** (1 - bits) < SUSPECT:
            break
        more = [climb(rungs, k) for k in range(len(kinds))]
        ladders = [
            sorted(first + second, key=lambda step: -step.h)
            for first, second in zip(ladders, more, strict=True)
        ]
        result.kappa = noise_factor(ladders)
        result.pairs = _pairs(
            function, index, kinds, cotangents, gradients, moves, ladders, result.kappa
        )
    result.verdict = _verdict(result, bits)
    return result


def _pairs(
    function: Map,
    index: int,
    kinds: Sequence[str],
    cotangents: list[list[torch.Tensor]],
    gradients: list[list[torch.Tensor]],
    moves: list[torch.Tensor],
    ladders: list[list[Step]],
    kappa: float,
) -> list[Pair]:
    pairs = []
    bits = working_bits(function, function.values[index])
    for k, kind in enumerate(kinds):
        found: Estimate | None = estimate(ladders[k], kappa)
        if found is None:
            pairs.append(Pair(kind))
            continue
        known = function.rounding or [0.0] * len(function.outputs)
        weighed = sum(
            norm(widened(v).abs() * torch.nan_to_num(widened(y)).abs())
            + norm(v) * sigma / unit_roundoff(y.dtype)
            for v, y, sigma in zip(cotangents[k], function.outputs, known, strict=True)
        )
        scale = max(
            product_norm(gradients[k][index], moves[k]),
            abs(found.slope),
            SHARE_OF_OUTPUT[bits] * weighed,
        )
        pairs.append(
            Pair(
                kind,
                claimed=found.slope - found.residual,
                measured=found.slope,
                bar=found.bar,
                sigma=found.sigma,
                scale=scale,
                h=found.h,
            )
        )
    return pairs


def _unsettled(pairs: Sequence[Pair], bits: int) -> bool:
    return any(
        pair.differs(TOLERATED[bits]) or not pair.resolution <= TOLERATED[bits] for pair in pairs
    )


def _verdict(result: InputJudgement, bits: int) -> str:
    if result.kappa * 2.0 ** (1 - bits) > UNRESOLVED[bits]:
        return UNSURE
    tolerated = TOLERATED[bits]
    if any(pair.differs(tolerated) for pair in result.pairs):
        return DIFFERS
    if not result.resolution <= HONEST[bits]:
        return UNSURE
    if any(pair.h > 0.0 and pair.error > CLEARLY * pair.bar for pair in result.pairs):
        return ROUNDED
    return AGREES


def along(function: Map, index: int) -> Callable[[torch.Tensor], Sequence[torch.Tensor] | None]:
    """``function`` as a function of its input number ``index`` alone."""

    def evaluate(value: torch.Tensor) -> Sequence[torch.Tensor] | None:
        values = list(function.values)
        values[index] = value
        return function.evaluate(values)

    return evaluate


def working_bits(function: Map, x: torch.Tensor) -> int:
    """The fewest significand bits among the input and the outputs."""
    dtypes = [x.dtype] + [
        y.dtype for y in function.outputs if y.is_floating_point() or y.is_complex()
    ]
    bits = min(significand_bits(dtype) for dtype in dtypes)
    return max(known for known in LADDER if known <= max(bits, min(LADDER)))

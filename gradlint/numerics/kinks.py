"""Find kinks, and judge without them: outputs with a kink are masked, or the point is nudged.

At a kink a central difference averages the two sides and proves nothing. See
gradlint/docs/numerics.md, section "Kinks".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from gradlint.numerics.differences import LADDER
from gradlint.numerics.directions import move_scale, signs
from gradlint.numerics.judge import Judgement, judge
from gradlint.numerics.map import Map, along, working_bits
from gradlint.numerics.products import unit_roundoff, widened
from gradlint.numerics.verdict import DIFFERS, UNSURE, InputJudgement

#: Limits of the kink test. A second difference may deviate from the smooth ratio by RATIO_SLACK of
#: its size, and by ULPS units in the last place; a kink must be at least SMALLEST_KINK of the
#: change of f_j, or of SHARE_OF_TYPICAL_RANGE of the typical change of all elements. Measured on
#: twelve smooth operators, 100 trials each: no false kink; 77–92 % of the kinks of relu, max,
#: pooling, clamp and hinge were found in float32 (numerics.md, section "Kinks").
RATIO_SLACK = 0.35
SMALLEST_KINK = 0.1
SHARE_OF_TYPICAL_RANGE = 0.3
ULPS = 8.0

#: Multiples of the measurement's step at which kinks are looked for: a kink farther away would have
#: kept the measurement from converging.
KINK_STEPS = (1.0, 8.0)

#: The same for path integrals, which reach only as far as their step.
KINK_STEPS_OF_PATH = (0.25, 1.0)

#: Share of the smallest kink that counts where another output has a kink at the same point: what
#: bends there bends all that is computed from it, some of it by little (heuristic: of slopes that
#: were off by one percent where others had changed their sign; rounding is told apart as before).
BESIDE_ANOTHER = 0.02

#: Share of each element's scale by which a sample is nudged (heuristic: far more than the finest
#: steps, little enough to stay in the domain).
NUDGE = 0.03


def kinked_outputs(
    evaluate: Callable[[torch.Tensor], Sequence[torch.Tensor] | None],
    x: torch.Tensor,
    u: torch.Tensor,
    outputs: Sequence[torch.Tensor],
    h: float,
    share: float = 1.0,
) -> list[torch.Tensor]:
    """For each output a boolean tensor, True where it has a kink along u within about h.

    For each output element j the second differences are

        d_k = f_j(x + h·u/2ᵏ) + f_j(x − h·u/2ᵏ) − 2·f_j(x),    k = 0, 1, 2

    If f_j is smooth, d_k = 4·d_{k+1}; at a kink, d_k = 2·d_{k+1}. Two halvings are needed, because
    one alone does not see a kink at a third of the step.

    Args:
        evaluate: returns the outputs at a value of the input; called six times.
        x: the input; u: direction of the same shape.
        outputs: the outputs at x.
        h: largest step; h/2 and h/4 are used too.
        share: of the smallest kink that counts otherwise.
    """
    wide = widened(x)
    flags = [torch.zeros(y.shape, dtype=torch.bool, device=y.device) for y in outputs]
    levels = []
    for k in range(3):
        moved = u * (h / 2.0**k)
        plus, minus = evaluate((wide + moved).to(x.dtype)), evaluate((wide - moved).to(x.dtype))
        if plus is None or minus is None:
            return flags
        levels.append((plus, minus))
    for j, y in enumerate(outputs):
        middle = widened(y)
        seconds, ranges = [], []
        for plus, minus in levels:
            high, low = widened(plus[j]), widened(minus[j])
            if high.shape != middle.shape or low.shape != middle.shape:
                return flags
            seconds.append(high + low - 2.0 * middle)
            ranges.append((high - low).abs())
        ulp = unit_roundoff(y.dtype)
        typical = middle.abs().median() if middle.numel() else middle.abs().sum()
        rounding = ULPS * ulp * torch.maximum(middle.abs(), typical)
        for k in range(2):
            spread = ranges[k].square().mean().sqrt() * SHARE_OF_TYPICAL_RANGE
            bend = (seconds[k] - 4.0 * seconds[k + 1]).abs()
            size = torch.maximum(seconds[k].abs(), 4.0 * seconds[k + 1].abs())
            flags[j] |= (bend > rounding + RATIO_SLACK * seconds[k].abs()) & (
                size > share * SMALLEST_KINK * 2.0**-k * torch.maximum(ranges[k], spread)
            )
    return flags


def smooth_masks(
    function: Map,
    item: InputJudgement,
    first: Judgement,
    steps: Sequence[float] | None = None,
    share: float = 1.0,
) -> list[torch.Tensor]:
    """For each output, True where no kink was seen along the directions of ``first``.

    Args:
        steps: steps to use along every direction; by default only directions that disagree are
            examined, at the step that each of them used.
        share: of the smallest kink that counts otherwise.
    """
    x = function.values[item.index]
    smooth = [torch.ones(y.shape, dtype=torch.bool, device=y.device) for y in function.outputs]
    for k, pair in enumerate(item.pairs):
        if steps is None and pair.clarity <= 1.0:
            continue
        u = first.probe(k).moves[item.index]
        multiples = KINK_STEPS_OF_PATH if pair.method == "path" else KINK_STEPS
        reach = [multiple * pair.h for multiple in multiples if pair.h > 0.0]
        for h in steps or reach:
            kinked = kinked_outputs(along(function, item.index), x, u, function.outputs, h, share)
            smooth = [good & ~bad for good, bad in zip(smooth, kinked, strict=True)]
    return smooth


def differs_closer_by(
    function: Map, item: InputJudgement, first: Judgement, kinds: Sequence[str], seed: int
) -> bool:
    """Whether the disagreement shows at finer steps too, within which no kink is seen.

    If f is a polynomial between its kinks, the coarsest steps have the smallest error bars, but
    they may reach kinks that lie far from the sample.
    """
    exponents = _finer(working_bits(function, function.values[item.index]))
    masks = smooth_masks(function, item, first, [2.0 ** -exponents[0]])
    if not all(bool(mask.all()) for mask in masks):
        return False
    closer = judge(function, seed=seed + 1, kinds=kinds, inputs=[item.index], exponents=exponents)
    return closer.inputs[0].verdict == DIFFERS


def judge_without_kinks(
    function: Map, index: int, masks: list[torch.Tensor], kinds: Sequence[str], seed: int
) -> tuple[str, str]:
    """The verdict without the outputs that have kinks, or else at a nearby point; and a note."""
    total = sum(mask.numel() for mask in masks)
    left = sum(int(mask.sum()) for mask in masks)
    if left:
        masked = judge(function, seed=seed, kinds=kinds, inputs=[index], masks=masks).inputs[0]
        if masked.verdict == DIFFERS:
            return DIFFERS, ""
    nudged = nudge(function, seed + 2)
    if nudged is None:
        return UNSURE, f"{total - left} of {total} outputs have a kink at this sample"
    there = judge(nudged, seed=seed, kinds=kinds, inputs=[index])
    nearby = there.inputs[0]
    if nearby.verdict == DIFFERS:
        # The nudge may lead to other kinks: in low precision the steps reach far.
        smooth = smooth_masks(nudged, nearby, there)
        again = judge(nudged, seed=seed + 1, kinds=kinds, inputs=[index], masks=smooth).inputs[0]
        return (DIFFERS, "") if again.verdict == DIFFERS else (UNSURE, "kinks everywhere nearby")
    note = f"{total - left} of {total} outputs have a kink at this sample; judged at a nearby point"
    return nearby.verdict, note


def without_jumps(
    function: Map, item: InputJudgement, first: Judgement, kinds: Sequence[str], seed: int
) -> tuple[InputJudgement, str] | None:
    """Judge an undecided input again without the outputs that jump within the coarse steps.

    In low precision only coarse steps rise above the noise, and a few outputs with a jump or a
    kink within them spoil the sum over all outputs.

    Returns:
        The judgement, and a note on what was left out; None if no output jumps, or more than half.
    """
    steps = [2.0**-e for e in LADDER[working_bits(function, function.values[item.index])][:2]]
    masks = smooth_masks(function, item, first, steps)
    total, left = sum(m.numel() for m in masks), sum(int(m.sum()) for m in masks)
    if not total / 2 <= left < total:
        return None
    again = judge(function, seed=seed, kinds=kinds, inputs=[item.index], masks=masks).inputs[0]
    return (
        again,
        f"{total - left} of {total} outputs jump or bend near this sample and were left out",
    )


def nudge(function: Map, seed: int) -> Map | None:
    """``function`` at a point near its own; None if it cannot be evaluated there."""
    generator = torch.Generator().manual_seed(seed)
    values = []
    for index, x in enumerate(function.values):
        draws = torch.rand(tuple(x.shape), generator=generator, dtype=torch.float64)
        share = (0.5 + 0.5 * draws).to(x.device)
        step = function.projected(index, NUDGE * share * move_scale(x) * signs(x, generator))
        values.append((widened(x) + step).to(x.dtype))
    outputs = function.evaluate(values)
    if outputs is None or any(
        a.shape != b.shape for a, b in zip(outputs, function.outputs, strict=True)
    ):
        return None
    return replace(function, values=values, outputs=list(outputs), twin=None)


def _finer(bits: int) -> tuple[int, ...]:
    """The usual steps without the coarsest one, but at least the three that an estimate needs."""
    usual = LADDER[bits]
    finer = usual[1:]
    return finer if len(finer) >= 3 else (*finer, finer[-1] + (finer[-1] - finer[-2]))

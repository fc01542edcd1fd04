"""From one judgement to a decision: confirm on a fresh seed, then rule out kinks.

A disagreement becomes a fault only if it is there again under fresh cotangents and directions,
and if the function is smooth where it was measured. At a kink a central difference averages the
two sides and proves nothing: the kinked outputs are masked, and where none is left the sample is
nudged off the kink and judged there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.numerics._differences import LADDER
from gradlint.numerics._directions import KINDS, direction, move_scale, signs
from gradlint.numerics._judge import (
    AGREES,
    DIFFERS,
    ROUNDED,
    UNSURE,
    InputJudgement,
    Judgement,
    Map,
    along,
    judge,
    working_bits,
)
from gradlint.numerics._kinks import kinked_outputs
from gradlint.numerics._products import widened

#: Kinks are looked for at these multiples of the step that a measurement used: a kink farther off
#: would have kept it from converging.
KINK_STEPS = (1.0, 8.0)

#: A sample is nudged by this share of each element's scale (heuristic: far beyond the finest
#: steps, small enough to stay in the domain).
NUDGE = 0.03


#: Where the first two judgements contradict each other, these (relative to the seed) break the tie:
#: a second disagreement beyond 6.5 σ under independent directions is no chance.
FURTHER_SEEDS = (4, 5, 6)


@dataclass
class Decision:
    """What is known of every input after confirmation.

    Args:
        judgement: the first judgement.
        verdicts: one an input, after confirmation and the kink test.
        notes: input position → what happened on the way (masked outputs, nudged sample).
        kinked: number of output elements found to have a kink at the sample.
        confirmed: the second judgement of the inputs that differ, with its own pairs.
    """

    judgement: Judgement
    verdicts: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    kinked: int = 0
    confirmed: dict[int, InputJudgement] = field(default_factory=dict)

    @property
    def resolution(self) -> float:
        """The worst resolving power among the inputs that could be judged."""
        return self.judgement.resolution


def decide(
    function: Map,
    *,
    seed: int,
    kinds: Sequence[str] = KINDS,
    inputs: Sequence[int] | None = None,
) -> Decision:
    """Judge ``function`` and confirm whatever disagrees.

    Args:
        seed: of the first judgement; the confirmation uses ``seed + 1``, the nudge ``seed + 2``.
        kinds: kinds of direction.
        inputs: positions to judge; default all.
    """
    first = judge(function, seed=seed, kinds=kinds, inputs=inputs)
    decision = Decision(first, [item.verdict for item in first.inputs])
    for place, item in enumerate(first.inputs):
        if item.verdict == UNSURE and item.pairs:
            _without_jumps(function, decision, place, kinds, seed)
    suspects = [(place, item) for place, item in enumerate(first.inputs) if item.verdict == DIFFERS]
    if not suspects:
        return decision
    second = judge(function, seed=seed + 1, kinds=kinds, inputs=[i.index for _, i in suspects])
    for (place, item), again in zip(suspects, second.inputs, strict=True):
        decision.confirmed[item.index] = again
        masks = _smooth_masks(function, item, first, seed)
        flagged = sum(int((~mask).sum()) for mask in masks)
        if flagged == 0:
            for further in FURTHER_SEEDS if again.verdict != DIFFERS else ():
                # One wrong element of very many is seen along some directions only.
                third = judge(function, seed=seed + further, kinds=kinds, inputs=[item.index])
                if third.inputs[0].verdict == DIFFERS:
                    again = decision.confirmed[item.index] = third.inputs[0]
                    break
            if again.verdict != DIFFERS:
                decision.verdicts[place] = UNSURE
                decision.notes[item.index] = "disagreed once and not again under fresh directions"
            continue
        if _differs_closer_by(function, item, first, kinds, seed):
            continue
        decision.kinked = max(decision.kinked, flagged)
        verdict, note = _beside_the_kink(function, item.index, masks, kinds, seed)
        decision.verdicts[place] = verdict
        decision.notes[item.index] = note
    return decision


def _differs_closer_by(
    function: Map, item: InputJudgement, first: Judgement, kinds: Sequence[str], seed: int
) -> bool:
    """Whether the disagreement is there at finer steps too, within which no kink is seen.

    Where f is a polynomial between its kinks, the coarsest steps have the smallest error bars and
    reach for kinks that lie far from the sample.
    """
    exponents = LADDER[working_bits(function, function.values[item.index])][1:]
    masks = _smooth_masks(function, item, first, seed, [2.0 ** -exponents[0]])
    if not all(bool(mask.all()) for mask in masks):
        return False
    closer = judge(function, seed=seed + 1, kinds=kinds, inputs=[item.index], exponents=exponents)
    return closer.inputs[0].verdict == DIFFERS


def _without_jumps(
    function: Map, decision: Decision, place: int, kinds: Sequence[str], seed: int
) -> None:
    """Judge an undecided input again without the outputs that jump within the coarse steps.

    In low precision only coarse steps rise above the noise, and a few outputs with a jump or a
    kink within them spoil the sum over all.
    """
    item = decision.judgement.inputs[place]
    steps = [2.0**-e for e in LADDER[working_bits(function, function.values[item.index])][:2]]
    masks = _smooth_masks(function, item, decision.judgement, seed, steps)
    total, left = sum(m.numel() for m in masks), sum(int(m.sum()) for m in masks)
    if not total / 2 <= left < total:
        return
    again = judge(function, seed=seed, kinds=kinds, inputs=[item.index], masks=masks).inputs[0]
    if again.verdict in (AGREES, ROUNDED):
        decision.verdicts[place] = AGREES
        decision.judgement.inputs[place] = again
        decision.notes[item.index] = (
            f"{total - left} of {total} outputs jump or bend near this sample and were left out"
        )


def _smooth_masks(
    function: Map,
    item: InputJudgement,
    first: Judgement,
    seed: int,
    steps: Sequence[float] | None = None,
) -> list[torch.Tensor]:
    """For each output, True where no kink was seen along any direction.

    Args:
        steps: steps at which kinks are looked for; default those that each pair used.
    """
    generator = torch.Generator().manual_seed(seed + 3)
    x = function.values[item.index]
    smooth = [torch.ones(y.shape, dtype=torch.bool, device=y.device) for y in function.outputs]
    for pair, gradients in zip(item.pairs, first.gradients, strict=True):
        u = function.projected(
            item.index, direction(pair.kind, x, gradients[item.index], generator)
        )
        for h in steps or [multiple * pair.h for multiple in KINK_STEPS if pair.h > 0.0]:
            kinked = kinked_outputs(along(function, item.index), x, u, function.outputs, h)
            smooth = [good & ~bad for good, bad in zip(smooth, kinked, strict=True)]
    return smooth


def _beside_the_kink(
    function: Map, index: int, masks: list[torch.Tensor], kinds: Sequence[str], seed: int
) -> tuple[str, str]:
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
    beside = there.inputs[0]
    if beside.verdict == DIFFERS:
        # The nudge may lead to other kinks: in low precision the steps reach far.
        smooth = _smooth_masks(nudged, beside, there, seed)
        again = judge(nudged, seed=seed + 1, kinds=kinds, inputs=[index], masks=smooth).inputs[0]
        return (DIFFERS, "") if again.verdict == DIFFERS else (UNSURE, "kinks all around")
    note = f"{total - left} of {total} outputs have a kink at this sample; judged beside it"
    return beside.verdict, note


def nudge(function: Map, seed: int) -> Map | None:
    """``function`` at a point a little beside its own; None where it can't be evaluated there."""
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
    return Map(
        values,
        list(outputs),
        function.evaluate,
        function.pull_at,
        function.rounding,
        function.project,
    )

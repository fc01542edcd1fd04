"""From one judgement to a decision: confirm it on a fresh seed, then rule out kinks.

A disagreement becomes a fault only if it shows again under fresh cotangents and directions, and if
the function is smooth where it was measured. In low precision, the float64 twin (if the op has one)
decides what the measurement cannot. See gradlint/docs/numerics.md, section "From a disagreement to
a fault".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gradlint.base.notes import WITHOUT_CASTS
from gradlint.numerics.bank import Bank, Probe
from gradlint.numerics.differences import LADDER, Estimate, difference, estimate
from gradlint.numerics.directions import KINDS
from gradlint.numerics.judge import Judgement, judge
from gradlint.numerics.kinks import (
    BESIDE_ANOTHER,
    differs_closer_by,
    judge_without_kinks,
    smooth_masks,
    without_jumps,
)
from gradlint.numerics.map import Map, along, finite_part, working_bits
from gradlint.numerics.pair import Pair
from gradlint.numerics.path import path_integral
from gradlint.numerics.products import norm, unit_roundoff, widened
from gradlint.numerics.twin import TwinJudgement, compare
from gradlint.numerics.vanishing import as_zero
from gradlint.numerics.verdict import (
    AGREES,
    DIFFERS,
    MIN_RESOLUTION,
    ROUNDED,
    TOLERATED,
    UNSURE,
    InputJudgement,
)

#: Roundings of a low dtype to which its gradient is right in full: a backward that casts to float32
#: inside was off by 2 to 9 of them in float64 (heuristic).
FEW_ROUNDINGS = 16.0

#: Seeds, relative to the first, that break the tie if the first two judgements contradict each
#: other: a second disagreement beyond 6.5 σ under independent directions cannot be chance.
FURTHER_SEEDS = (4, 5, 6)

#: Significand bits up to which the float64 twin is always consulted: differences of 16-bit numbers
#: resolve too little to pass a gradient by themselves.
ALWAYS_TWIN = 11

#: Notes on gradients that are smaller than the rounding of the outputs.
LOST = "its gradient is tiny compared with the outputs, and lost in their rounding"
ZERO = "its gradient is zero apart from rounding, so it was judged relative to the outputs"


def concentrated(function: Map, index: int, probe: Probe, pair: Pair) -> bool:
    """Whether a small disagreement comes from few elements rather than from all of them.

    What is tolerated (few digits, rounding) is relative to ‖g∘u‖. That grows with the size of the
    tensor, so one wrong element among very many is small compared with it. Here the search zooms
    in, again and again, on the half of the elements that disagrees more: the disagreement of few
    elements grows relative to their own share of ‖g∘u‖, that of all elements does not.

    Args:
        probe: the draw that disagrees; pair: what was measured along it.
    """
    if function.project is not None and function.project[index] is not None:
        return False  # elements of this input can't move alone
    x, u = function.values[index], probe.moves[index]
    worth = widened(probe.gradients[index]).abs() * widened(u).abs()
    tolerated = TOLERATED[working_bits(function, x)]
    chosen = torch.ones(x.shape, dtype=torch.bool, device=x.device)
    error = pair.error
    while True:
        size = int(chosen.sum())
        share = norm(worth * chosen)
        if size < 2 or error * math.sqrt(size) <= tolerated * share:
            return False  # even if one typical element caused all of it, it would be tolerable
        halves = _halves(chosen)
        found = [_measured(function, index, u * half, probe, pair) for half in halves]
        known = [
            (abs(one.residual), one.bar, half)
            for one, half in zip(found, halves, strict=True)
            if one is not None
        ]
        if not known:
            return False
        error, bar, chosen = max(known, key=lambda one: one[0] - one[1])
        if error <= bar:
            return False
        if error > bar + tolerated * norm(worth * chosen):
            return True


def _halves(chosen: torch.Tensor) -> list[torch.Tensor]:
    rank = chosen.reshape(-1).cumsum(0).reshape(chosen.shape)
    first = chosen & (rank <= int(chosen.sum()) // 2)
    return [first, chosen & ~first]


def _measured(
    function: Map, index: int, u: torch.Tensor, probe: Probe, pair: Pair
) -> Estimate | None:
    x = function.values[index]
    if pair.method == "path":
        return path_integral(function, index, u, probe.cotangents, pair.h)
    steps = []
    for exponent in LADDER[working_bits(function, x)]:
        step = difference(
            along(function, index),
            x,
            u,
            probe.cotangents,
            probe.gradients[index],
            2.0**-exponent,
            function.rounding,
        )
        if step is not None:
            steps.append(step)
    return estimate(steps, 1.0)


@dataclass
class Decision:
    """What is known about every input after confirmation.

    Args:
        function: the map that was judged.
        judgement: the first judgement.
        verdicts: one per input, after confirmation and the kink test.
        notes: input position → what happened on the way (masked outputs, nudged sample).
        kinked: number of output elements found to have a kink at the sample.
        confirmed: input position → the second judgement, for the inputs that differ.
        twin: the decision on the float64 twin, if it was consulted.
        compared: input position → how its gradient compares with the twin's, if consulted.
    """

    function: Map
    judgement: Judgement
    verdicts: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    kinked: int = 0
    confirmed: dict[int, Judgement] = field(default_factory=dict)
    twin: Decision | None = None
    compared: dict[int, TwinJudgement] = field(default_factory=dict)

    @property
    def resolution(self) -> float:
        """The worst resolving power among the inputs that could be judged."""
        return max((self.resolution_of(item.index) for item in self.judgement.inputs), default=0.0)

    def resolution_of(self, index: int) -> float:
        """Resolving power for input ``index``: the measurement's, or the twin's if that decided."""
        item = next(item for item in self.judgement.inputs if item.index == index)
        found = self.compared.get(index)
        if found is None or found.verdict == UNSURE:
            return item.resolution
        return max(found.resolution, self.twin.resolution_of(index) if self.twin else 0.0)

    def behind(self, place: int) -> tuple[Decision, int]:
        """The decision, and the position in its judgement, with the evidence for ``place``: the
        twin's decision if the input differs there too, or is as rounded: float64 is clearer
        evidence."""
        index = self.judgement.inputs[place].index
        for other, item in enumerate(self.twin.judgement.inputs if self.twin else ()):
            if item.index == index and self.twin:
                said = self.twin.verdicts[other]
                if said == DIFFERS or said == self.verdicts[place] == ROUNDED:
                    return self.twin, other
        return self, place


def decide(
    function: Map,
    *,
    seed: int,
    kinds: Sequence[str] = KINDS,
    inputs: Sequence[int] | None = None,
) -> Decision:
    """Judge ``function`` and confirm whatever disagrees.

    Args:
        seed: seed of the first judgement; confirmation uses ``seed + 1``, the nudge ``seed + 2``.
        kinds: kinds of direction.
        inputs: positions to judge; default all.
    """
    if any(y.numel() for y in function.outputs) and not any(
        bool(torch.isfinite(y).any()) for y in function.outputs
    ):
        return _nothing_finite(function, kinds, seed, inputs)
    function = finite_part(function)
    first = judge(function, seed=seed, kinds=kinds, inputs=inputs)
    decision = Decision(function, first, [item.verdict for item in first.inputs])
    settled = _ask_twin(decision, kinds, seed)
    for place, item in enumerate(first.inputs):
        if place in settled or not item.pairs:
            continue
        if item.verdict == UNSURE:
            _settle_unsure(decision, place, kinds, seed)
        elif item.verdict == ROUNDED and concentrated(
            function, item.index, first.probe(_clearest(item)), item.pairs[_clearest(item)]
        ):
            decision.verdicts[place] = DIFFERS
    suspects = [
        (place, item)
        for place, item in enumerate(first.inputs)
        if decision.verdicts[place] == DIFFERS and place not in settled
    ]
    if suspects:
        _confirm(decision, suspects, kinds, seed)
    for place, item in enumerate(first.inputs):
        if decision.verdicts[place] == DIFFERS and place not in settled:
            _contradicted(decision, place, item)
    return decision


def _nothing_finite(
    function: Map, kinds: Sequence[str], seed: int, inputs: Sequence[int] | None
) -> Decision:
    wanted = list(range(len(function.values)) if inputs is None else inputs)
    judged = [InputJudgement(index, UNSURE) for index in wanted]
    return Decision(
        function,
        Judgement(judged, Bank(function, kinds, seed, wanted)),
        [UNSURE] * len(wanted),
        dict.fromkeys(wanted, "no element of the outputs is finite"),
    )


def _clearest(item: InputJudgement) -> int:
    return max(range(len(item.pairs)), key=lambda k: item.pairs[k].clarity)


def _settle_unsure(decision: Decision, place: int, kinds: Sequence[str], seed: int) -> None:
    item = decision.judgement.inputs[place]
    bits = working_bits(decision.function, decision.function.values[item.index])
    if item.sharpness <= MIN_RESOLUTION[bits] < item.resolution:
        zero = as_zero(decision.function, item, decision.judgement, bits)
        if zero is not None:
            decision.verdicts[place], decision.judgement.inputs[place] = AGREES, zero
        decision.notes[item.index] = LOST if zero is None else ZERO
        return
    found = without_jumps(decision.function, item, decision.judgement, kinds, seed)
    if found is not None and found[0].verdict in (AGREES, ROUNDED):
        decision.verdicts[place] = AGREES
        decision.judgement.inputs[place], decision.notes[item.index] = found


def _ask_twin(decision: Decision, kinds: Sequence[str], seed: int) -> set[int]:
    """Let the float64 twin decide what the measurement in low precision cannot; returns the places
    that it settles."""
    function, first = decision.function, decision.judgement
    asked = [
        place
        for place, item in enumerate(first.inputs)
        if function.values[item.index].numel()
        and (
            decision.verdicts[place] != AGREES
            or (bits := working_bits(function, function.values[item.index])) <= ALWAYS_TWIN
            or item.resolution > TOLERATED[bits]
        )
    ]
    twin = function.twin() if asked and function.twin is not None else None
    if twin is None:
        return set()
    positions = [first.inputs[place].index for place in asked]
    for found in compare(function, twin, seed=seed, inputs=positions):
        decision.compared[found.index] = found
    if not any(found.compared for found in decision.compared.values()):
        return set()  # what it computes in float64 says nothing about what it computes here
    decision.twin = decide(twin, seed=seed, kinds=kinds, inputs=positions)
    settled = set()
    for place, verdict, judged in zip(
        asked, decision.twin.verdicts, decision.twin.judgement.inputs, strict=True
    ):
        index = first.inputs[place].index
        note = decision.twin.notes.get(index) or _left_out(twin)
        if verdict == DIFFERS:
            decision.verdicts[place] = DIFFERS
        elif verdict in (AGREES, ROUNDED) and decision.compared[index].verdict == AGREES:
            # Fewer digits than float64 has are no loss to a dtype that has fewer still.
            few = FEW_ROUNDINGS * unit_roundoff(function.values[index].dtype)
            kept = verdict == ROUNDED and judged.worst.relative_error > few
            decision.verdicts[place] = ROUNDED if kept else AGREES
        else:
            continue
        if note:
            decision.notes[index] = note
        settled.add(place)
    return settled


def _left_out(twin: Map) -> str:
    if twin.stands_for is None:
        return ""
    return f"{WITHOUT_CASTS} {str(twin.stands_for).removeprefix('torch.')}"


def _contradicted(decision: Decision, place: int, item: InputJudgement) -> None:
    """Withdraw the verdict "differs" if float64 does not support it.

    A gradient that is right in float64 and close to the float64 one is not called wrong because of
    differences that have few digits.
    """
    compared = decision.compared.get(item.index)
    if decision.twin is None or compared is None or compared.verdict == DIFFERS:
        return
    decision.verdicts[place] = UNSURE
    decision.notes[item.index] = (
        "disagrees in this dtype but not in float64; too ill-conditioned or not smooth enough to "
        "decide"
    )


def _confirm(
    decision: Decision,
    suspects: Sequence[tuple[int, InputJudgement]],
    kinds: Sequence[str],
    seed: int,
) -> None:
    function, first = decision.function, decision.judgement
    second = judge(function, seed=seed + 1, kinds=kinds, inputs=[i.index for _, i in suspects])
    for (place, item), again in zip(suspects, second.inputs, strict=True):
        decision.confirmed[item.index] = second
        masks = smooth_masks(function, item, first)
        flagged = sum(int((~mask).sum()) for mask in masks)
        if flagged == 0:
            if not _repeats(decision, item, again, kinds, seed):
                decision.verdicts[place] = UNSURE
                decision.notes[item.index] = "disagreed once and not again under fresh directions"
        elif not differs_closer_by(function, item, first, kinds, seed):
            decision.kinked = max(decision.kinked, flagged)
            verdict, note = judge_without_kinks(function, item.index, masks, kinds, seed)
            finer = smooth_masks(function, item, first, share=BESIDE_ANOTHER)
            if verdict == DIFFERS and sum(int((~mask).sum()) for mask in finer) > flagged:
                verdict, note = judge_without_kinks(function, item.index, finer, kinds, seed)
            decision.verdicts[place] = verdict
            decision.notes[item.index] = note


def _repeats(
    decision: Decision,
    item: InputJudgement,
    again: InputJudgement,
    kinds: Sequence[str],
    seed: int,
) -> bool:
    """Whether the disagreement shows under other directions too. One wrong element among very many
    shows along some of them only, so several are tried."""
    function = decision.function
    seeds = [seed + 1, *(seed + further for further in FURTHER_SEEDS)]
    for number, fresh in enumerate(seeds):
        judgement = decision.confirmed[item.index]
        if number:
            judgement = judge(function, seed=fresh, kinds=kinds, inputs=[item.index])
            again = judgement.inputs[0]
        k = _clearest(again) if again.pairs else 0
        if again.verdict == DIFFERS or (
            again.verdict == ROUNDED
            and concentrated(function, item.index, judgement.probe(k), again.pairs[k])
        ):
            decision.confirmed[item.index] = judgement
            return True
    return False

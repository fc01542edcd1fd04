"""PyTorch's operator database: false alarms, planted faults, and time beside fast mode.

Run it with ``python -m tests.benchmarks.operator_database [--dtype float32] [--part NAME]``. Every
operator of ``op_db`` that is differentiable, its first three samples: each gradient is judged as
it is (a disagreement is a false alarm) and with three planted faults (agreement is a miss).
``gradcheck(fast_mode=True)`` judges the same samples in the same run.

Goals: no false alarm but at the operators of ``support/known.py``; at most 0.3 % of the faults
missed in float64 and 1 % in float32, none of them within the resolving power that the verdict
states; the clean pass within 3 times fast mode.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice

import torch

from gradlint.numerics.decide import Decision
from gradlint.numerics.directions import cotangent, move_scale
from gradlint.numerics.products import norm, unit_roundoff, widened
from gradlint.numerics.verdict import AGREES, DIFFERS
from gradlint.trace.op_io import OpRaised
from gradlint.trace.problem import Problem
from tests.benchmarks.support.faults import FAULTS, faulty, sizeable_place
from tests.benchmarks.support.known import known
from tests.benchmarks.support.measure import heading, markdown, table
from tests.benchmarks.support.operators import Case, cases, judged
from tests.benchmarks.support.tally import (
    CAUGHT,
    GOAL_MISSED,
    Line,
    Tally,
    outcome_of,
    rows,
    slowest,
)

SEED = 5

#: A gradient whose effect is below this many roundings of the outputs is zero but for rounding, and
#: no fault is planted there: corrcoef of two observations is 1 and its gradient 1e-16.
ROUNDING = 8.0


#: Faults are planted in samples of at most this many elements; ``scale.py`` has larger ones.
MOST_PLANTED = 2**18


def measure(case: Case, tally: Tally, *, plant: bool, rival: bool) -> None:
    """Judge ``case`` clean, beside fast mode, and with every fault; adds to ``tally``."""
    if not case.problem().inputs:
        return
    # Whoever comes second finds the operator's code warm: they take turns.
    passed, fast_s = _rival(case) if rival and tally.samples % 2 else (None, 0.0)
    started = time.perf_counter()
    try:
        decision = judged(case.problem(), seed=SEED)
    except OpRaised as raised:
        if known(case.name, case.number, case.dtype):
            return
        tally.verdicts["raised"] += 1
        tally.add(Line("raised", case.name, case.number, "", repr(raised.error)[:90]))
        return
    seconds = time.perf_counter() - started
    if decision is None:
        return
    if rival and passed is None:
        passed, fast_s = _rival(case)
    tally.samples += 1
    tally.operators.add(case.name)
    clean = _clean(case, decision, tally)
    if not known(case.name, case.number, case.dtype):
        tally.clock(case, seconds, fast_s, passed)
    if plant and clean and sum(x.numel() for x in case.differentiable()) <= MOST_PLANTED:
        _plant(case, clean, tally)


def _rival(case: Case) -> tuple[bool, float]:
    """Whether fast mode passes, and its seconds. Where it fails it goes on through all elements,
    for its message alone."""
    started = time.perf_counter()
    passed = case.gradcheck()
    return passed, time.perf_counter() - started


def _clean(case: Case, decision: Decision, tally: Tally) -> list[int]:
    """Count the verdicts of the clean operator; the inputs worth planting faults in."""
    names = [item.name for item in case.problem().inputs]
    if known(case.name, case.number, case.dtype):
        tally.known.update(decision.verdicts)
        return []
    tally.verdicts.update(decision.verdicts)
    kept = []
    for verdict, item in zip(decision.verdicts, decision.judgement.inputs, strict=True):
        if verdict != DIFFERS:
            kept.append(item.index)
        if verdict != AGREES:
            worst = item.worst
            what = {DIFFERS: "FALSE ALARM"}.get(verdict, verdict)
            detail = f"error {worst.error:.1e} bar {worst.bar:.1e} scale {worst.scale:.1e}"
            tally.note(what, case, names[item.index], detail, decision, item)
    return kept


def _plant(case: Case, inputs: list[int], tally: Tally) -> None:
    """Judge ``case`` with every fault in every one of ``inputs``."""
    try:
        # Below float64 a gradient may be rounding alone: float64 tells what it should be.
        problem = case.problem(torch.float64)
        gradients, whole, generator = _gradients(problem)
    except OpRaised:
        problem = case.problem()
        gradients, whole, generator = _gradients(problem)
    found, present, _ = _gradients(case.problem())
    if not present:  # in this dtype the outputs underflow to nothing, and so does any fault
        return
    tensors = case.differentiable()
    for index in inputs:
        gradient = gradients[index]
        move = move_scale(problem.inputs[index].value)
        if gradient is None or gradient.layout != torch.strided:
            continue
        place = sizeable_place(gradient, generator)
        effect = norm(widened(gradient) * move)
        if place is None or effect < ROUNDING * unit_roundoff(tensors[index].dtype) * whole:
            continue
        here = found[index]
        if here is None or not float(widened(here).flatten()[place].abs()) > 0.0:
            continue
        for fault in FAULTS:
            decision = judged(
                case.faulty(tensors[index], fault, place).problem(), seed=SEED, inputs=[index]
            )
            assert decision is not None
            error = norm((widened(faulty(gradient, fault, place)) - widened(gradient)) * move)
            outcome = outcome_of(decision, error / effect)
            tally.faults[fault, outcome] += 1
            if outcome != CAUGHT:
                detail = (
                    f"{fault} of {gradient.numel()}: {decision.verdicts[0]}, worth "
                    f"{error / effect:.1e} of the gradient"
                )
                item, name = decision.judgement.inputs[0], problem.inputs[index].name
                tally.note(f"{outcome} miss", case, name, detail, decision, item)


def _gradients(
    problem: Problem,
) -> tuple[Sequence[torch.Tensor | None], float, torch.Generator]:
    """The gradients of ``problem`` under a random cotangent v, ‖v∘y‖, and the generator."""
    generator = torch.Generator().manual_seed(SEED)
    _, outputs = problem.linearize()
    chosen = [item for item in outputs if item.differentiable]
    vs = {item.name: cotangent(item.value.detach(), generator) for item in chosen}
    finite = [torch.nan_to_num(widened(item.value), 0.0, 0.0, 0.0) for item in chosen]
    whole = math.hypot(*(norm(widened(v) * y) for v, y in zip(vs.values(), finite, strict=True)))
    return problem.pull(vs), whole, generator


def run(
    dtype: str,
    *,
    part: str = "",
    names: set[str] | None = None,
    plant: bool = True,
    rival: bool = True,
    every: int = 1,
    chatty: bool = False,
) -> Tally:
    """One pass over the database, or over one sample of ``every`` so many."""
    tally = Tally(chatty=chatty)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in islice(cases(getattr(torch, dtype), part, names), 0, None, every):
            measure(case, tally, plant=plant, rival=rival)
    return tally


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="gradlint on PyTorch's operator database")
    dtypes = list(GOAL_MISSED)
    parser.add_argument("--dtype", nargs="+", choices=dtypes, default=dtypes)
    parser.add_argument("--part", default="", help="operators with this in their name")
    parser.add_argument("--every", type=int, default=1, help="one sample of so many")
    parser.add_argument("--no-faults", action="store_true", help="the clean pass only")
    parser.add_argument("--no-rival", action="store_true", help="without gradcheck")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tallies = {
        dtype: run(
            dtype,
            part=chosen.part,
            plant=not chosen.no_faults,
            rival=not chosen.no_rival,
            every=chosen.every,
            chatty=not chosen.json,
        )
        for dtype in chosen.dtype
    }
    found = rows(tallies)
    if chosen.json:
        lines = {d: [asdict(line) for line in tally.lines] for d, tally in tallies.items()}
        print(json.dumps({"table": found, "lines": lines}, indent=1))
        return
    for dtype, tally in tallies.items():
        longest = ", ".join(f"{name} {seconds:.2f} s" for seconds, name in slowest(tally))
        print(f"slowest in {dtype}: {longest}")
    print()
    print(heading("Operator database, first three samples of every differentiable operator"))
    print(markdown(found) if chosen.markdown else table(found))


if __name__ == "__main__":
    main(sys.argv[1:])

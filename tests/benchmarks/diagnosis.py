"""Named causes of planted faults: how many are right, how many are not named, how many are false.

Run it with ``python -m tests.benchmarks.diagnosis [--dtype float32] [--cause SLUG]``. Every cause
is planted into every operator on three sets of shapes where it is a fault there; each takes the
way of a check: judged, confirmed, measured, diagnosed. Goals: the right cause in 95 %, a false one
in at most 1 %.

Where two faults return the same gradient (a roll by one of three slices and another order of them)
either name is right.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradlint.experiments.differentiable_maps import differentiable_names, first_order
from gradlint.experiments.mismatch import mismatch
from gradlint.model.sample import Sample
from gradlint.numerics.decide import decide
from gradlint.numerics.verdict import DIFFERS
from gradlint.targets.build import from_object
from gradlint.trace.problem import Problem
from tests.benchmarks.support.measure import heading, table
from tests.benchmarks.support.planted import (
    OPERATORS,
    VISIBLE,
    Fault,
    Operator,
    drawn_gradients,
    faults,
    planted,
    same,
)

GOAL_RIGHT, GOAL_FALSE = 0.95, 0.01
RIGHT, NONE, FALSE, UNSEEN = "right", "none", "false", "not seen"
SEED = 3


@dataclass
class Result:
    """One planted fault and what was said of it."""

    operator: str
    size: int
    fault: Fault
    verdict: str
    named: str
    calls: int


def cases(dtype: torch.dtype, seed: int) -> Iterator[tuple[Operator, int, Fault, set[str]]]:
    """Every fault that is one, with the slugs that are right for it."""
    for operator in OPERATORS:
        for size in range(3):
            inputs = operator.inputs(size, dtype, seed)
            tried = list(faults(operator, inputs, seed))
            returned = {}
            for fault in tried:
                pairs = list(drawn_gradients(operator, inputs, fault, seed))
                share = 1e-4 if fault.cause == "low-precision" else VISIBLE
                if not any(same([pair], share) for pair in pairs):
                    returned[id(fault)] = [got for got, _ in pairs]
            for fault in tried:
                if id(fault) not in returned:
                    continue
                own = returned[id(fault)]
                names = {
                    other.cause
                    for other in tried
                    if id(other) in returned
                    and same(list(zip(own, returned[id(other)], strict=True)), 1e-9)
                }
                yield operator, size, fault, names


def judged(operator: Operator, size: int, fault: Fault, names: set[str], dtype: torch.dtype,
           seed: int) -> Result:  # fmt: skip
    """Judge, confirm, measure and diagnose one fault."""
    inputs = operator.inputs(size, dtype, seed)
    problem = Problem(
        from_object(planted(operator, fault)), Sample("planted", "--inputs", tuple(inputs))
    )
    function = first_order(problem)
    before = problem.forward_calls
    decision = decide(function, seed=seed)
    place = next(k for k, item in enumerate(decision.judgement.inputs) if item.index == operator.at)
    if decision.verdicts[place] != DIFFERS:
        return Result(operator.name, size, fault, UNSEEN, decision.verdicts[place], 0)
    found = mismatch(
        function,
        decision,
        place,
        [item.name for item in problem.inputs],
        seed=seed,
        outputs=differentiable_names(problem),
    )
    calls = problem.forward_calls - before
    cause = found.cause
    if cause is None:
        return Result(operator.name, size, fault, NONE, "", calls)
    named = {cause.slug, *cause.others}
    verdict = RIGHT if named & names else FALSE
    return Result(operator.name, size, fault, verdict, cause.text, calls)


def run(dtype: torch.dtype, seed: int, only: str = "") -> list[Result]:
    """Every case."""
    return [
        judged(operator, size, fault, names, dtype, seed)
        for operator, size, fault, names in cases(dtype, seed)
        if not only or fault.cause == only
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    parser.add_argument("--cause", default="", help="this one only")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    began = time.perf_counter()
    results = run(getattr(torch, options.dtype), options.seed, options.cause)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        counts[result.fault.cause][result.verdict] += 1
        if result.verdict != RIGHT:
            where = f"{result.operator}, size {result.size}, {result.fault.detail}"
            print(f"{result.verdict:8} {result.fault.cause}: {where}: {result.named}")
    columns = (RIGHT, NONE, FALSE, UNSEEN)
    rows = [("cause", *columns)]
    rows += [
        (cause, *(str(found[each] or "") for each in columns))
        for cause, found in sorted(counts.items())
    ]
    total = Counter(result.verdict for result in results)
    rows.append(("all", *(str(total[each]) for each in columns)))
    print(heading(f"Named causes of {len(results)} planted faults, {options.dtype}"))
    print(table(rows))
    seen = len(results) - total[UNSEEN]
    for what, share, met in (
        (RIGHT, total[RIGHT] / seen, total[RIGHT] >= GOAL_RIGHT * seen),
        (FALSE, total[FALSE] / seen, total[FALSE] <= GOAL_FALSE * seen),
    ):
        goal = f">= {GOAL_RIGHT:.0%}" if what == RIGHT else f"<= {GOAL_FALSE:.0%}"
        print(f"{what}: {share:.1%} (goal {goal}: {'met' if met else 'missed'})")
    calls = sorted(result.calls for result in results)
    print(f"forward calls: median {calls[len(calls) // 2]}, most {calls[-1]}")
    print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

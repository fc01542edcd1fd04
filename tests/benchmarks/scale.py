"""One wrong element among many: eleven operators at 10² to 10⁶ elements.

Run it with ``python -m tests.benchmarks.scale [--full] [--dtype float32] [--ops …] [--sizes …]``.
For every operator, size and seed one element of the gradient is zeroed, or its sign flipped, or
the whole gradient is 1 % too large. Each is judged as it is by ``GL401``, without the search for
the place; so is the operator without a fault. A cell says how many faults were caught, ``?`` how
many were declared to be beyond what this run resolves, ``!`` how many were missed in silence.

Goals: float64 all caught; float32 all caught to 10⁴ elements, and caught or declared at 10⁵.
``--full`` has 20 seeds at every size and takes most of an hour on 2 cores; otherwise there are
fewer at the large sizes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context

import torch

from gradlint.numerics.verdict import DIFFERS, UNSURE
from tests.benchmarks.support.faults import FAULTS
from tests.benchmarks.support.measure import heading, markdown, spaced, table
from tests.benchmarks.support.operators import judged
from tests.benchmarks.support.scales import SCALES, TRIPLE, problem_of
from tests.benchmarks.support.tally import CAUGHT, DECLARED, SILENT, outcome_of

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
SEEDS = 20

#: Seeds of the short run, where 20 would take long.
FEWER = {100_000: 4, 1_000_000: 1}

CLEAN = "clean"


@dataclass(frozen=True)
class Trial:
    """One operator, right (``fault`` None) or wrong, at one size and seed."""

    op: str
    size: int
    dtype: str
    seed: int
    fault: str | None


@dataclass(frozen=True)
class Result:
    """What became of a trial. ``blamed``: inputs found wrong that are right; ``unsure``: right
    ones on which no judgement was possible."""

    trial: Trial
    outcome: str
    blamed: int
    unsure: int
    seconds: float
    detail: str = ""


def attempt(trial: Trial) -> Result:
    """Judge one trial."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    problem, share = problem_of(
        trial.op, trial.size, getattr(torch, trial.dtype), trial.seed, trial.fault
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decision = judged(problem, seed=1000 + trial.seed)
    assert decision is not None
    wrong = trial.fault is not None or trial.op == TRIPLE
    outcome = CLEAN
    if wrong:
        outcome = outcome_of(decision, share)
    rest = decision.verdicts[1:] if wrong else decision.verdicts
    detail = ""
    if outcome in (DECLARED, SILENT) or DIFFERS in rest or UNSURE in rest:
        judged_inputs = [item.index for item in decision.judgement.inputs]
        powers = ", ".join(f"{decision.resolution_of(index):.1e}" for index in judged_inputs)
        detail = (
            f"{' '.join(decision.verdicts)}; worth {share:.1e}, resolving {powers}; "
            f"{'; '.join(decision.notes.values())}"
        )
    return Result(
        trial,
        outcome,
        rest.count(DIFFERS),
        rest.count(UNSURE),
        time.perf_counter() - started,
        detail,
    )


def trials(
    ops: Iterable[str], sizes: Iterable[int], dtypes: Iterable[str], seeds: dict[int, int]
) -> Iterator[Trial]:
    """Every combination, from small to large."""
    for size, dtype, op in product(sorted(sizes), dtypes, ops):
        for seed in range(seeds[size]):
            for fault in (None,) if op == TRIPLE else (None, *FAULTS):
                yield Trial(op, size, dtype, seed, fault)


def cell(results: Sequence[Result]) -> str:
    """Counts of the faults among ``results``: caught, then ``?`` declared, ``!`` missed."""
    counts = Counter(result.outcome for result in results)
    total = counts[CAUGHT] + counts[DECLARED] + counts[SILENT]
    if not total:
        return "–"
    text = str(counts[CAUGHT]) if counts[CAUGHT] < total else f"{total} of {total}"
    text += f" ?{counts[DECLARED]}" if counts[DECLARED] else ""
    return text + (f" !{counts[SILENT]}" if counts[SILENT] else "")


def rows(results: Sequence[Result], dtype: str, sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """The table of one dtype: operators down, sizes across."""
    chosen = [result for result in results if result.trial.dtype == dtype]
    found = [(dtype, *(spaced(size) for size in sizes))]
    ops = list(dict.fromkeys(name for name in (*SCALES, TRIPLE)))
    for op in ops:
        here = [result for result in chosen if result.trial.op == op]
        if here:
            found.append((op, *(cell([r for r in here if r.trial.size == n]) for n in sizes)))
    for fault in FAULTS:
        here = [result for result in chosen if result.trial.fault == fault]
        found.append((fault, *(cell([r for r in here if r.trial.size == n]) for n in sizes)))
    for what, count in (
        ("right inputs blamed", lambda r: r.blamed),
        ("right inputs undecided", lambda r: r.unsure),
    ):
        found.append(
            (what, *(str(sum(count(r) for r in chosen if r.trial.size == n)) for n in sizes))
        )
    return found


def run(chosen: Sequence[Trial], jobs: int, *, chatty: bool = False) -> list[Result]:
    """Judge every trial in ``jobs`` processes."""
    if jobs == 1:
        return [attempt(trial) for trial in chosen]
    results = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for number, result in enumerate(pool.map(attempt, chosen, chunksize=4)):
            results.append(result)
            if chatty and number % 50 == 0:
                print(f"{number} of {len(chosen)}", file=sys.stderr)
    return results


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="one wrong element among many")
    parser.add_argument("--full", action="store_true", help=f"{SEEDS} seeds at every size")
    parser.add_argument("--seeds", type=int, nargs="+", help="seeds, for all sizes or for each")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--ops", nargs="+", choices=[*SCALES, TRIPLE], default=[*SCALES, TRIPLE])
    parser.add_argument("--dtype", nargs="+", default=["float64", "float32"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    chosen = parser.parse_args(arguments)
    usual = {size: SEEDS if chosen.full else FEWER.get(size, SEEDS) for size in chosen.sizes}
    seeds = usual
    if chosen.seeds:
        each = chosen.seeds * len(chosen.sizes) if len(chosen.seeds) == 1 else chosen.seeds
        seeds = dict(zip(chosen.sizes, each, strict=True))
    planned = list(trials(chosen.ops, chosen.sizes, chosen.dtype, seeds))
    results = run(planned, chosen.jobs, chatty=True)
    for result in results:
        if result.detail:
            trial = result.trial
            print(
                f"{result.outcome:9} {trial.dtype} {trial.op} {trial.size} seed {trial.seed} "
                f"{trial.fault}: {result.detail}"
            )
    print()
    print(heading("One wrong element among many: faults caught, ? declared, ! missed"))
    print("seeds:", ", ".join(f"{seeds[size]} at {size}" for size in chosen.sizes), "\n")
    for dtype in chosen.dtype:
        found = rows(results, dtype, chosen.sizes)
        print((markdown if chosen.markdown else table)(found), "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

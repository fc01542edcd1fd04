"""False alarms by repetition: operators that are right, under fresh seeds.

Run it with ``python -m tests.benchmarks.repetition [--seeds 500] [--dtype bfloat16] [--jobs 2]``.
The operators of ``support/repeated.py`` go through GL401 and GL801 as in ``gradlint check``, with
fresh inputs, parameters, cotangents and directions for every seed.

Goals: no failure in float64, float32 and bfloat16; the share of inconclusive checks is reported.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import torch

from gradlint.checking.examine import expand_samples
from gradlint.experiments.subject import Subject
from gradlint.model.rule import Outcome
from gradlint.model.sample import Sample
from gradlint.model.settings import Settings
from gradlint.rules.precision.low_precision_gradient import RULE as GL801
from gradlint.rules.value.wrong_gradient import RULE as GL401
from gradlint.targets.build import from_object
from tests.benchmarks.support.measure import heading, table
from tests.benchmarks.support.repeated import REPEATED, Repeated

DTYPES = ("float64", "float32", "bfloat16")
SEEDS = 500
RULES = {"GL401": GL401, "GL801": GL801}

#: Seeds handed to a process at a time.
CHUNK = 20


@dataclass(frozen=True)
class Checked:
    """What one rule said of one operator under one seed."""

    name: str
    dtype: str
    seed: int
    code: str
    verdict: str
    detail: str


def subject_of(case: Repeated, dtype: str, seed: int) -> Subject:
    """``case`` at inputs drawn from ``seed``, as ``gradlint check --dtype`` would judge it."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    inputs = tuple(value.detach().requires_grad_() for value in case.inputs(draw))
    op = from_object(case.op)
    settings = Settings(seed=seed, dtypes=None if dtype == "float64" else (dtype,))
    samples, _ = expand_samples(op, [Sample(case.name, "given", inputs)], settings)
    return Subject(op, samples[0], settings)


def checks(case: Repeated, dtype: str, seed: int) -> Iterator[Checked]:
    """Both rules on one operator under one seed."""
    subject = subject_of(case, dtype, seed)
    for code, rule in RULES.items():
        assert rule.probe is not None
        outcome = rule.probe(subject)
        yield Checked(case.name, dtype, seed, code, outcome.verdict, _detail(outcome))


def _detail(outcome: Outcome) -> str:
    told = [
        f"{finding.message}: {finding.evidence.get('elements', '')}"
        for finding in outcome.findings
        if finding.severity != "info"
    ]
    return "; ".join([*told, outcome.note])


def chunk(position: int, dtype: str, seeds: range) -> list[Checked]:
    """All checks of one operator over ``seeds``."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return [found for seed in seeds for found in checks(REPEATED[position], dtype, seed)]


def run(dtypes: tuple[str, ...], seeds: range, jobs: int, only: str = "") -> list[Checked]:
    """All checks; operators whose name contains ``only``."""
    parts = [range(low, min(low + CHUNK, seeds.stop)) for low in seeds[::CHUNK]]
    work = [
        (position, dtype, part)
        for dtype in dtypes
        for position, case in enumerate(REPEATED)
        if dtype in case.dtypes and only in case.name
        for part in parts
    ]
    if jobs == 1:
        return [found for item in work for found in chunk(*item)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = [pool.submit(chunk, *item) for item in work]
        return [found for future in futures for found in future.result()]


def report(found: list[Checked], dtypes: tuple[str, ...]) -> str:
    """Verdicts by operator and dtype: share of inconclusive ones, and failures."""
    tally = Counter((item.name, item.dtype, item.code, item.verdict) for item in found)
    rows = [("operator", *(f"{code} {dtype}" for dtype in dtypes for code in RULES))]
    names = list(dict.fromkeys(item.name for item in found))
    for name in [*names, "all"]:
        row = [name]
        for dtype in dtypes:
            for code in RULES:
                chosen = names if name == "all" else [name]
                counts = {
                    verdict: sum(tally[one, dtype, code, verdict] for one in chosen)
                    for verdict in ("pass", "fail", "inconclusive")
                }
                row.append(_cell(counts))
        rows.append(tuple(row))
    return table(rows)


def _cell(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    if not total:
        return "—"
    failed = f"{counts['fail']} failed, " if counts["fail"] else ""
    return f"{failed}{counts['inconclusive'] / total:.1%} of {total}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--dtype", default=",".join(DTYPES))
    parser.add_argument("--only", default="", help="operators whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    dtypes = tuple(given.dtype.split(","))
    started = time.perf_counter()
    seeds = range(given.first, given.first + given.seeds)
    found = run(dtypes, seeds, given.jobs, given.only)
    failed = [item for item in found if item.verdict == "fail"]
    print(heading(f"False alarms by repetition, {given.seeds} seeds; inconclusive checks"))
    print(report(found, dtypes))
    for item in failed:
        print(f"FAILED {item.name}, {item.dtype}, seed {item.seed}, {item.code}: {item.detail}")
    notes = Counter(
        (item.name, item.dtype, item.code, item.detail)
        for item in found
        if item.verdict == "inconclusive"
    )
    for (name, dtype, code, detail), count in notes.most_common(10):
        print(f"inconclusive {count} times: {name}, {dtype}, {code}: {detail}")
    print(f"{len(failed)} failures, {time.perf_counter() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Second derivatives of PyTorch's operator database: how many agree.

Run it with ``python -m tests.benchmarks.second_order [--part NAME]``: for information, float64,
inputs of at most 2000 elements together, and the operators whose second derivatives PyTorch
claims.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter

import torch

from gradlint.numerics.verdict import AGREES, DIFFERS, ROUNDED, UNSURE
from gradlint.trace.op_io import OpRaised
from tests.benchmarks.support.known import known
from tests.benchmarks.support.measure import heading, table
from tests.benchmarks.support.operators import cases, judged_twice

#: Elements of all inputs of a sample together.
MOST = 2000
SEED = 5


def run(part: str = "", names: set[str] | None = None, *, chatty: bool = False) -> Counter[str]:
    """Verdicts over the database, the samples judged and the samples that raise."""
    counts: Counter[str] = Counter()
    for case in cases(torch.float64, part, names):
        if not case.twice or known(case.name, case.number, "float64"):
            continue
        problem = case.problem()
        if not problem.inputs or sum(item.value.numel() for item in problem.inputs) > MOST:
            continue
        try:
            found = judged_twice(problem, seed=SEED)
        except OpRaised as raised:
            counts["raised"] += 1
            if chatty:
                print(f"raised {case.name}[{case.number}] {raised.phase} {raised.error!r}"[:150])
            continue
        if found is None:
            continue
        value_names, decision = found
        counts["samples"] += 1
        counts.update(decision.verdicts)
        for verdict, item in zip(decision.verdicts, decision.judgement.inputs, strict=True):
            if verdict != AGREES and chatty:
                worst = item.worst
                print(
                    f"{verdict} {case.name}[{case.number}] {value_names[item.index]}  error "
                    f"{worst.error:.1e} bar {worst.bar:.1e} scale {worst.scale:.1e} resolution "
                    f"{item.resolution:.1e} {decision.notes.get(item.index, '')}",
                    flush=True,
                )
    return counts


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="second derivatives of PyTorch's operators")
    parser.add_argument("--part", default="", help="operators with this in their name")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = run(chosen.part, chatty=True)
    rows = [("second order, float64", "figure")]
    rows += [(what, str(counts[what])) for what in ("samples", "raised", AGREES, ROUNDED)]
    rows += [("inconclusive", str(counts[UNSURE])), ("disagree", str(counts[DIFFERS]))]
    rows.append(("time", f"{time.perf_counter() - started:.0f} s"))
    print()
    print(heading("Second derivatives of the operator database"))
    print(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The drop-ins in fast mode beside torch's fast mode, on PyTorch's operator database.

Run it with ``python -m tests.benchmarks.dropin_cost [--part NAME] [--second] [--every N]``. Every
differentiable operator of ``op_db``, its first three samples in float64, unless torch's fast mode
fails there (it then goes on to slow mode for its message). Both checkers take turns, several rounds
in one process; of each, the least processor time counts, which other work of the machine does not
change.

Goals: the same verdict; at most twice torch's calls and time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

import gradlint
from tests.benchmarks.support.known import known
from tests.benchmarks.support.measure import heading, median, table
from tests.benchmarks.support.operators import Case, cases

#: Turns that each checker takes on a sample.
ROUNDS = 3
GOAL = 2.0
SEED = 5


@dataclass(frozen=True)
class Ratio:
    """What the drop-in took on one sample, in what torch took.

    Args:
        name: operator and number of the sample.
        passed: the drop-in's verdict; torch's is a pass.
        calls: of the function; seconds: of the check.
    """

    name: str
    passed: bool
    calls: float
    seconds: float


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.calls = function, 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.function(*args)


def run(
    name: str, part: str = "", names: set[str] | None = None, every: int = 1
) -> Iterator[Ratio]:
    """The ratios on every sample that torch's fast mode passes.

    Args:
        name: "gradcheck" or "gradgradcheck".
        part, names: as for :func:`cases`.
        every: only each ``every``-th sample.
    """
    for case in islice(cases(torch.float64, part, names), 0, None, every):
        if known(case.name, case.number, "float64") or not case.differentiable():
            continue
        if name == "gradgradcheck" and not case.twice:
            continue
        found = compared(case, name)
        if found is not None:
            yield found


def compared(case: Case, name: str) -> Ratio | None:
    """One sample; None if torch's fast mode does not pass it."""
    passed, calls, seconds = {}, {}, {}
    for _ in range(ROUNDS):
        for home in (torch.autograd, gradlint):
            function, leaves = case.as_function()
            counted = Counted(function)
            torch.manual_seed(SEED)
            started = time.process_time()
            try:
                verdict = getattr(home, name)(
                    counted, leaves, fast_mode=True, raise_exception=False
                )
            except Exception:
                verdict = False
            taken = time.process_time() - started
            if home is torch.autograd and not verdict:
                return None
            passed[home], calls[home] = verdict, counted.calls
            seconds[home] = min(taken, seconds.get(home, taken))
    return Ratio(
        f"{case.name}[{case.number}]",
        passed[gradlint],
        calls[gradlint] / calls[torch.autograd],
        seconds[gradlint] / seconds[torch.autograd],
    )


def shares(ratios: Sequence[float]) -> list[str]:
    """Median, 95th percentile, largest, and how many exceed the goal."""
    ordered = sorted(ratios)
    above = sum(ratio > GOAL for ratio in ordered)
    return [
        f"{median(ordered):.2f}",
        f"{ordered[int(0.95 * (len(ordered) - 1))]:.2f}",
        f"{ordered[-1]:.2f}",
        f"{above} of {len(ordered)}",
    ]


def main() -> None:
    """Print the table, and every sample beyond the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="", help="only operators with this in their name")
    parser.add_argument("--second", action="store_true", help="gradgradcheck in place of gradcheck")
    parser.add_argument("--every", type=int, default=1, help="only each N-th sample")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    name = "gradgradcheck" if options.second else "gradcheck"
    print(heading(f"{name}(fast_mode=True), in torch's"))
    found = []
    for one in run(name, options.part, every=options.every):
        found.append(one)
        if not one.passed or max(one.calls, one.seconds) > GOAL:
            verdict = "" if one.passed else "  FALSE ALARM"
            print(f"{one.name}: calls {one.calls:.2f}, time {one.seconds:.2f}{verdict}", flush=True)
    rows = [
        ["", "median", "95 %", "most", f"above {GOAL:g}"],
        ["calls", *shares([one.calls for one in found])],
        ["time", *shares([one.seconds for one in found])],
    ]
    print(table(rows))
    print(f"failed by the drop-in alone: {sum(not one.passed for one in found)}")


if __name__ == "__main__":
    main()

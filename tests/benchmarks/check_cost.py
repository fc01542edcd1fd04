"""What ``gradlint check`` costs: one small Function, and a hundred distinct ones in a folder.

Run it with ``python -m tests.benchmarks.check_cost [rounds]``. Goals: one small Function within
3 times ``python -c "import torch"``; a hundred at 150 ms each beyond start-up, on 2 cores; all
rules on one small Function within 1.5 s beyond start-up, at 3 times the calls of the numerics.

``python -m tests.benchmarks.check_cost [rounds] --against FOLDER`` compares the check of one small
Function with that of another checkout of gradlint, such as ``git worktree add FOLDER COMMIT``.

Start-up of all rules is a check by one of the rules that take PyTorch's compiler, whose modules
are imported beforehand; start-up of the other rows is without them.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import gradlint
from tests.benchmarks.support.functions import write_functions
from tests.benchmarks.support.measure import (
    GRADLINT,
    IMPORT_TORCH,
    heading,
    interleaved,
    median,
    table,
    wall,
)

ROOT = Path(__file__).resolve().parents[2]
ONE = ROOT / "examples" / "right" / "elementwise.py"
COUNT = 100
GOAL_ONE = 3.0
GOAL_EACH_MS = 150.0
GOAL_BEYOND_S = 1.5
GOAL_CALLS = 3.0

#: The judgements of first and second order: what all other rules are compared with.
NUMERICS = ("GL401", "GL501")

#: Imports PyTorch's compiler and hardly does more.
LIGHT = "GL906"


def calls_beside_numerics(op: Any) -> tuple[int, int]:
    """Forward and backward calls of all rules on ``op``, and of the numerics alone."""
    (target,) = gradlint.check(op, seed=0).targets
    calls = {item.code: item.forward_calls + item.backward_calls for item in target.checks}
    return sum(calls.values()), sum(calls[code] for code in NUMERICS)


def against(folder: Path, rounds: int) -> None:
    """Print what one small Function costs with the gradlint in ``folder`` and with this one."""
    check = (*GRADLINT, "check", "--seed", "0", f"{ONE}:Square")
    cases = {"all rules": check, "--select GL401": (*check, "--select", "GL401")}
    trees = {"there": folder.resolve(), "here": ROOT}
    times = interleaved(
        {
            f"{name} {tree}": partial(wall, command, path)  # what lies there is imported
            for name, command in cases.items()
            for tree, path in trees.items()
        },
        rounds,
    )
    rows = [("check of one small Function", "there, s", "here, s", "ratio")]
    for name in cases:
        there, here = (median(times[f"{name} {tree}"]) for tree in trees)
        rows.append((name, f"{there:.2f}", f"{here:.2f}", f"{here / there:.2f}"))
    print(heading(f"Cost beside {folder}, median of {rounds} interleaved runs"))
    print(table(rows))


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_functions(Path(folder), COUNT)
        check = (*GRADLINT, "check", "--seed", "0")
        one = (*check, "--ignore", "GL9", f"{ONE}:Square")
        every = (*check, f"{ONE}:Square")
        light = (*check, "--select", LIGHT, f"{ONE}:Square")
        times = interleaved(
            {
                "import torch": partial(wall, IMPORT_TORCH),
                "one": partial(wall, one),
                "all rules": partial(wall, every),
                "start-up of all": partial(wall, light),
                "hundred -j 1": partial(wall, (*check, "--ignore", "GL9", "-j", "1", folder)),
                "hundred -j 2": partial(wall, (*check, "--ignore", "GL9", "-j", "2", folder)),
            },
            rounds,
        )
    torch_s = median(times["import torch"])
    one_s = median(times["one"])
    ratio = one_s / torch_s
    rows = [("what", "median s", "figure", "goal", "")]
    rows.append(('python -c "import torch"', f"{torch_s:.2f}", "", "", ""))
    rows.append(
        (
            "check of one small Function without GL9",
            f"{one_s:.2f}",
            f"{ratio:.2f} × import torch",
            f"{GOAL_ONE:g} ×",
            "met" if ratio <= GOAL_ONE else "missed",
        )
    )
    beyond = median(times["all rules"]) - median(times["start-up of all"])
    rows.append(
        (
            "check of one small Function by all rules",
            f"{median(times['all rules']):.2f}",
            f"{beyond:.2f} s beyond start-up",
            f"{GOAL_BEYOND_S:g} s",
            "met" if beyond <= GOAL_BEYOND_S else "missed",
        )
    )
    called, numerics = calls_beside_numerics(f"{ONE}:Square")
    rows.append(
        (
            "forward and backward calls of all rules",
            "",
            f"{called / numerics:.2f} × the {numerics} of the numerics",
            f"{GOAL_CALLS:g} ×",
            "met" if called <= GOAL_CALLS * numerics else "missed",
        )
    )
    for jobs in (1, 2):
        seconds = median(times[f"hundred -j {jobs}"])
        # The check of one Function is all start-up but for its own few hundredths of a second.
        each_ms = 1000 * (seconds - one_s) / (COUNT - 1)
        rows.append(
            (
                f"check of {COUNT} small Functions without GL9, -j {jobs}",
                f"{seconds:.2f}",
                f"{each_ms:.0f} ms each",
                f"{GOAL_EACH_MS:g} ms" if jobs == 2 else "",
                "" if jobs == 1 else "met" if each_ms <= GOAL_EACH_MS else "missed",
            )
        )
    print(heading(f"Cost of a check, median of {rounds} interleaved runs"))
    print(table(rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--against", type=Path, help="another checkout of gradlint")
    given = parser.parse_args()
    if given.against is not None:
        against(given.against, given.rounds)
    else:
        main(given.rounds)

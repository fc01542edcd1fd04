"""How soon a terminal shows something, the first verdict on one small operator, and all of it.

Run it with ``python -m tests.benchmarks.first_verdict [rounds]``. Goals: something within a second;
values, shapes, contract and finiteness within 1.5 times ``python -c "import torch"``, all rules
within 2.2 times, on 2 cores. ``--against FOLDER`` measures another checkout of gradlint as well,
such as ``git worktree add FOLDER COMMIT``.

On a machine that does other work, processor time tells more than time on the clock.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from gradlint.cli.progress import FIRST_WORDS
from tests.benchmarks.support.measure import GRADLINT, IMPORT_TORCH, heading, median, table

ROOT = Path(__file__).resolve().parents[2]
ONE = ROOT / "examples" / "right" / "linear.py"
GOAL_SHOWN_S = 1.0
GOAL_FIRST, GOAL_ALL = 1.5, 2.2


@dataclass
class Times:
    """Seconds from the start of a command.

    Args:
        shown: until the terminal showed anything; first: until the first verdict; end: until it
            ended; processor: that it took of the processors, all its processes together.
    """

    shown: float
    first: float
    end: float
    processor: float


def timed(command: tuple[str, ...], folder: Path) -> Times:
    """``command``, run in ``folder`` on a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(folder)}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    text = b""
    shown = first = 0.0
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # nobody has the other side open any more
            break
        if not more:
            break
        now = time.perf_counter() - started
        text += more
        shown = shown or now
        if not first and FIRST_WORDS.encode() in text:
            first = now
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    os.close(ours)
    end = time.perf_counter() - started
    assert process.returncode == 0, text.decode()
    return Times(shown or end, first or end, end, usage.ru_utime + usage.ru_stime)


def main(rounds: int, other: Path | None) -> None:
    check = (*GRADLINT, "check", "--seed", "0", "-j", "2", f"{ONE}:Linear")
    cases = {"import torch": (IMPORT_TORCH, ROOT), "gradlint check": (check, ROOT)}
    if other is not None:
        cases["the other checkout"] = (check, other.resolve())
    found: dict[str, list[Times]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, (command, folder) in cases.items():
            times = timed(command, folder)
            if number:  # the first round warms the disk caches
                found[name].append(times)
    torch = found["import torch"]
    rows = [("one small operator", "shown, s", "first verdict", "all rules", "processor time")]
    for name, times in found.items():
        ratios = [
            median(
                [
                    getattr(mine, what) / getattr(its, base)
                    for mine, its in zip(times, torch, strict=True)
                ]
            )
            for what, base in (("first", "end"), ("end", "end"), ("processor", "processor"))
        ]
        shown = median([item.shown for item in times])
        rows.append((name, f"{shown:.2f}", *(f"{ratio:.2f}" for ratio in ratios)))
    rows.append(("goal", f"{GOAL_SHOWN_S:.2f}", str(GOAL_FIRST), str(GOAL_ALL), ""))
    print(heading(f"First verdict, median of {rounds} interleaved runs, in times of import torch"))
    print(table(rows))
    seconds = median([item.end for item in torch]), median([item.processor for item in torch])
    print("import torch: {:.2f} s, {:.2f} s of processor time".format(*seconds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=7)
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    main(options.rounds, options.against)

"""Memory of the process that reports, by the number of operators.

Run it with ``python -m tests.benchmarks.many_results [--operators 500 5000]``. What the workers of
one small operator send is recorded once. Then a process of its own is told the same of as many
operators, one after another, as if their workers had run, and writes reports: once as the command
line does, which keeps the results in a file, and once as the Python API does, which holds them.

Goal: under 400 MB for 5,000 operators, and on the command line at most 3,000 bytes for each
operator: what names it and where its result is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from gradlint.base.files import write_whole
from gradlint.model.events import Event
from gradlint.model.op import OpRef
from gradlint.model.report import Location, Report
from gradlint.model.settings import Settings
from gradlint.report.render import render_parts
from gradlint.rules.catalogue import CATALOGUE
from gradlint.running import _wire
from gradlint.running._process import Ending
from gradlint.running._stack import Stack
from gradlint.running._task import ConfirmTask, TargetTask, Task, Trouble
from gradlint.running.events import Done
from gradlint.running.run import _Plan, execute
from gradlint.running.spool import Spool
from tests.benchmarks.many_operators import write
from tests.benchmarks.support.measure import heading, table

#: Megabytes that are accepted, and bytes an operator on the command line.
GOAL_MB, GOAL_BYTES = 400, 3_000

#: Formats that are written.
FORMATS = ("json", "full", "sarif", "markdown")

SETTINGS = Settings(seed=1)

ENDED = Ending(0, None, "done", "backward", Stack([]), "", finished=True)


def recorded(folder: Path) -> list[bytes]:
    """What the two workers of an operator that passes send."""
    bodies: list[bytes] = []
    (target,) = write(folder, 1, 1)
    with _heard_by(TargetTask, bodies), _heard_by(ConfirmTask, bodies):
        done = execute([str(folder / target)], SETTINGS)
    assert done.exit_code == 0
    return bodies


@contextmanager
def _heard_by(kind: Any, bodies: list[bytes]) -> Iterator[None]:
    """Keep what tasks of ``kind`` are told in the body."""
    usual = kind.event

    def event(task: Task, event: Event) -> None:
        bodies.append(_wire._encoder.encode(event))
        usual(task, event)

    kind.event = event
    try:
        yield
    finally:
        kind.event = usual


def replayed(bodies: list[bytes], operators: int, spool: Spool | None = None) -> Report:
    """The report of a run in which the workers of every operator send ``bodies``."""
    plan = _Plan(SETTINGS, Trouble(), None, spool=spool)
    refs = []
    for number in range(operators):
        name = f"Op{number}"
        place = Location("operators.py", 1 + 14 * number, 1, 1 + 14 * number, 9)
        refs.append(OpRef(f"operators.py:{name}", "file", "operators.py", name, location=place))
    plan.add(plan.chosen(refs))
    for task in plan.tasks:
        left = map(_wire.decoded, bodies)
        following: list[Task] = [task]
        while following:
            (now,) = following
            now.job()
            for event in left:
                now.event(event)
                if isinstance(event, Done):
                    break
            following = now.ended(ENDED)
    return Report(plan.reports(), seed=1)


def measure(
    bodies: list[bytes], operators: int, held: bool, folder: str, found: Connection
) -> None:
    """Collect and write, and send the peak of memory of this process."""
    before = peak_mb()
    report = replayed(bodies, operators, None if held else Spool())
    collected = peak_mb()
    assert {target.verdict for target in report.targets} == {"pass"}
    path = os.path.join(folder, "report")
    for format in FORMATS:
        write_whole(path, render_parts(report, format, width=100, rules=CATALOGUE))
    found.send((before, collected, peak_mb()))


def peak_mb() -> float:
    """The most that this process held so far."""
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def measured(operators: list[int], *, held: bool) -> list[tuple[float, float, float]]:
    """For each number of operators: megabytes at first, with all results, and after reports."""
    context = multiprocessing.get_context("spawn")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bodies = recorded(Path(folder))
        for number in operators:
            ours, theirs = context.Pipe()
            process = context.Process(target=measure, args=(bodies, number, held, folder, theirs))
            process.start()
            theirs.close()
            rows.append(ours.recv())
            process.join()
    return rows


def slope(operators: list[int], found: list[tuple[float, float, float]]) -> float:
    """Bytes of one more operator."""
    return 1e6 * (found[-1][-1] - found[0][-1]) / (operators[-1] - operators[0])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="memory of the process that reports")
    parser.add_argument("--operators", type=int, nargs="+", default=[500, 5000])
    chosen = parser.parse_args(arguments)
    print(heading("peak memory of the process that reports"))
    rows = [("results", "operators", "at first, MB", "all collected, MB", "reports written, MB")]
    slopes, most = [], 0.0
    for held, name in ((False, "in a file"), (True, "in memory")):
        found = measured(chosen.operators, held=held)
        for number, sizes in zip(chosen.operators, found, strict=True):
            rows.append((name, f"{number:,}", *(f"{size:.0f}" for size in sizes)))
        slopes.append(slope(chosen.operators, found))
        most = max(most, *(sizes[-1] for sizes in found))
    print(table(rows))
    print(f"bytes an operator: {slopes[0]:,.0f} in a file, {slopes[1]:,.0f} in memory")
    return 0 if most <= GOAL_MB and slopes[0] <= GOAL_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A folder checked again from the cache, against the first time.

Run it with ``python -m tests.benchmarks.cached [--operators 100] [--files 20] [--select GL4]``. It
writes the operators into a temporary folder, checks them twice with ``--cache``, and prints the
processor time of each run with all its workers, and what was read. A third run follows after one
file changed.

Goal: the second run takes at most 5 % of the first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.many_operators import write
from tests.benchmarks.support.measure import heading, table

#: The largest share of the first run that the second may take.
GOAL = 0.05

ROOT = str(Path(__file__).parents[2])


@dataclass(frozen=True)
class Took:
    """What a run took, and how many verdicts it read and kept."""

    processor_s: float
    read: int
    kept: int


def took(folder: Path, words: list[str]) -> Took:
    """A run on ``folder``, in which every operator passes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = folder.parent / "report.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "gradlint",
            "check",
            ".",
            *words,
            "-q",
            "--report",
            f"json={report}",
        ],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ROOT},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    use = json.loads(report.read_text())["cache"]
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(processor, use["read"], use["kept"])


def measured(operators: int, files: int, words: list[str]) -> list[Took]:
    """The first run, the second, and one after a file changed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "operators"
        folder.mkdir()
        write(folder, operators, files)
        words = [*words, "--cache", str(Path(place) / "kept")]
        runs = [took(folder, words), took(folder, words)]
        changed = sorted(folder.glob("*.py"))[0]
        changed.write_text(changed.read_text() + "# changed\n")
        return [*runs, took(folder, words)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="a folder checked again from the cache")
    parser.add_argument("--operators", type=int, default=100)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--select", default="", help="rules; default: all")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    words = ["-j", str(chosen.jobs)]
    words += ["--select", chosen.select] if chosen.select else []
    runs = measured(chosen.operators, chosen.files, words)
    print(heading(f"{chosen.operators} operators in {chosen.files} files"))
    names = ("first run", "second run", "after one file changed")
    rows = [
        (
            name,
            f"{run.processor_s:.1f} s",
            f"{100 * run.processor_s / runs[0].processor_s:.1f} %",
            str(run.read),
            str(run.kept),
        )
        for name, run in zip(names, runs, strict=True)
    ]
    print(table([("run", "processor time", "of the first", "read", "kept"), *rows]))
    return int(runs[1].processor_s > GOAL * runs[0].processor_s)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

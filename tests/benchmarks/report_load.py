"""Seconds of processor time and peak memory of a report with many findings.

Run it as ``python -m tests.benchmarks.report_load``.
Each format is written in a process of its own, to a file, from findings that lie in memory; what
these take themselves is shown beside. Then what ``json`` and ``jsonl`` wrote is read back, as
``gradlint report`` does.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

from gradlint.base.files import write_whole
from gradlint.model.report import Check, Finding, Location, Report, TargetReport
from gradlint.report.read import read_report
from gradlint.report.render import FORMATS, render_parts
from gradlint.rules.catalogue import CATALOGUE


def report_of(findings: int, targets: int) -> Report:
    """A report of ``findings`` in ``targets`` operators; each finding with ten numbers, made by a
    check of its own."""
    made = []
    for number in range(targets):
        target = TargetReport(f"pkg/ops.py:Op{number}", "function", "fail")
        for place in range(findings // targets):
            target.checks.append(Check("GL401", "fail", f"spec {place}", duration_s=0.5))
            target.findings.append(
                Finding(
                    "GL401",
                    "wrong_gradient",
                    "error",
                    f"wrong gradient for `x{place}`",
                    cause="scaled",
                    input=f"x{place}",
                    index=[place, 3],
                    location=Location("pkg/ops.py", 1 + place, 9, 1 + place, 31),
                    evidence={f"number_{key}": key / 7 for key in range(10)},
                    help="multiply what is returned for it by 2",
                    sample=f"spec {place}",
                    seed=17,
                    reproduce=f"gradlint check pkg/ops.py:Op{number} --select GL401 --seed 17",
                )
            )
        made.append(target)
    return Report(made, seed=17)


def measure(format: str, findings: int, targets: int, folder: str) -> None:
    """Write the report as ``format`` and print what that took."""
    report = report_of(findings, targets)
    before = _peak()
    start = time.process_time()
    path = Path(folder) / f"report.{format}"
    write_whole(path, render_parts(report, format, width=100, rules=CATALOGUE))
    seconds = time.process_time() - start
    size = path.stat().st_size / 1e6
    print(
        f"{format:<8} {findings:>8,} findings {seconds:7.1f} s {_peak():7.0f} MB peak "
        f"({before:.0f} MB before) {size:7.1f} MB written",
        flush=True,
    )


def measure_reading(format: str, findings: int, folder: str) -> None:
    """Read back what was written as ``format`` and print what that took."""
    path = Path(folder) / f"report.{format}"
    start = time.process_time()
    report = read_report(str(path))
    seconds = time.process_time() - start
    assert isinstance(report, Report)
    assert len(report.findings) == findings
    print(f"{format:<8} read back        {seconds:7.1f} s {_peak():7.0f} MB peak", flush=True)


def _peak() -> float:
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main() -> None:
    """Measure all formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", type=int, default=100_000)
    parser.add_argument("--targets", type=int, default=100)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for format in FORMATS:
            given = (format, options.findings, options.targets, folder)
            process = context.Process(target=measure, args=given)
            process.start()
            process.join()
            failed |= process.exitcode != 0
        for format in ("json", "jsonl"):
            read = (format, options.findings, folder)
            process = context.Process(target=measure_reading, args=read)
            process.start()
            process.join()
            failed |= process.exitcode != 0
    sys.exit(int(failed))


if __name__ == "__main__":
    main()

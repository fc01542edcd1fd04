"""Wall times of whole processes, interleaved so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

IMPORT_TORCH = (sys.executable, "-c", "import torch")
GRADLINT = (sys.executable, "-m", "gradlint")


def wall(command: Sequence[str], folder: Path | None = None) -> float:
    """Seconds that ``command`` takes as a process of its own, output thrown away; in ``folder``, or
    where this process is.

    Raises:
        SystemExit: it exits with another code than 0; what it wrote to stderr is shown.
    """
    start = time.perf_counter()
    done = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        cwd=folder,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{' '.join(command)} exits with {done.returncode}:\n{done.stderr.decode()}")
    return seconds


def interleaved(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Every case once a round, after one round that warms the disk caches and is not kept."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, measure in cases.items():
            seconds = measure()
            if number:
                times[name].append(seconds)
    return times


def median(values: Sequence[float]) -> float:
    """The middle value: one disturbed run moves it little."""
    return statistics.median(values)


def heading(title: str) -> str:
    """What was measured, and on what."""
    packages = []
    for name in ("gradlint", "torch", "typer"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} (not installed)")
    return "\n".join(
        (
            title,
            f"{os.cpu_count()} cores, {processor()}, {platform.system()} {platform.machine()}",
            f"Python {platform.python_version()}, {', '.join(packages)}",
            "",
        )
    )


def processor() -> str:
    """The processor's name, where the system tells it."""
    if shutil.which("lscpu"):
        listing = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
        for line in listing.splitlines():
            if line.startswith("Model name:"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows in aligned columns, the first one left, the others right; the first row is a header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def spaced(number: int) -> str:
    """1 000 000."""
    return f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """The same rows as a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join("---" for _ in rows[0]) + " |")
    return "\n".join(lines)

"""How soon after a file is saved ``gradlint watch`` says what the rules of first order find.

Run it with ``python -m tests.benchmarks.watched [saves]``. Goal: 300 ms for a small operator. A
real ``watch`` runs over a file that is saved again and again; the time is that from the end of
writing until the line with the verdict can be read.

On a machine that does other work the clock tells little: beside it stands the processor time that
``watch`` and all its processes took meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.support.measure import GRADLINT, heading, median, table

ROOT = Path(__file__).resolve().parents[2]

#: One input, and one of the examples: three inputs that have to be inferred, two samples.
SQUARE = """
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x
"""
LINEAR = (ROOT / "examples" / "right" / "linear.py").read_text()
OPERATORS = {"Square": SQUARE, "Linear": LINEAR}
GOAL_S = 0.3

#: Seconds of rest before each save, so that what came of the last one has ended.
_REST_S = 1.0

#: Seconds in which ``watch`` must have said something.
_PATIENCE_S = 300.0


class Times(NamedTuple):
    """Seconds from the end of writing to the verdict: on the clock, and of processors."""

    clock: float
    processor: float


def tree(root: int) -> Iterator[int]:
    """``root`` and all processes that descend from it."""
    yield root
    try:
        with open(f"/proc/{root}/task/{root}/children") as file:
            children = file.read().split()
    except OSError:
        return
    for child in children:
        yield from tree(int(child))


def processor_seconds(root: int) -> float:
    """Processor time of ``root`` and its descendants, those that have ended included."""
    ticks = 0
    for pid in tree(root):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime: proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(name: str, saves: int, folder: Path) -> list[Times]:
    """``saves`` saves of the file that defines the operator ``name``."""
    path = folder / "ops.py"
    text = OPERATORS[name]
    path.write_text(text)
    process = subprocess.Popen(
        (*GRADLINT, "watch", f"{path.name}:{name}"),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
    )
    limit = threading.Timer(_PATIENCE_S, process.kill)
    limit.start()
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    found = []
    try:
        _until(lines, "all rules:")
        for number in range(saves):
            time.sleep(_REST_S)
            before = processor_seconds(process.pid)
            path.write_text(f"{text}\n# {number}\n")
            start = time.perf_counter()
            _until(lines, "rules of first order: 1 pass")
            clock = time.perf_counter() - start
            found.append(Times(clock, processor_seconds(process.pid) - before))
            _until(lines, "all rules:")
    finally:
        limit.cancel()
        process.kill()
        process.wait()
    return found


def _until(lines: Iterator[str], words: str) -> None:
    seen = []
    for line in lines:
        seen.append(line)
        if words in line:
            return
    sys.exit("watch ended:\n" + "".join(seen))


def main(arguments: list[str]) -> int:
    saves = int(arguments[0]) if arguments else 10
    rows = [("", *(f"{kind}, {name}" for name in Times._fields for kind in ("least", "median")))]
    least = []
    for name in OPERATORS:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(name, saves, Path(folder))
        row = [name]
        for field in Times._fields:
            values = [getattr(one, field) for one in found]
            row += [f"{min(values):.2f} s", f"{median(values):.2f} s"]
        rows.append(tuple(row))
        least.append(min(one.clock for one in found))
    print(heading("From saving to the verdict of first order"))
    print(table(rows))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; goal {GOAL_S:.1f} s")
    return int(least[0] > GOAL_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Many operators in one file against as many in a hundred files.

Run it with ``python -m tests.benchmarks.many_operators [--operators 2000] [--files 100] [--sample
60] [--select GL401]``. It writes the operators into a temporary folder, checks ``--sample`` of them
(0: all) out of one file and out of many, and prints the processor time that gradlint and all its
workers took. Since the rest of the operators is there but not checked, a sample shows what each
costs; what a run costs whatever their number is measured with ten operators and taken off.

Goal: those in one file take at most 1.3 times as long.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.support.measure import heading, table

#: The largest ratio that is accepted.
GOAL = 1.3

#: Operators in the smaller run: as in the larger one, the server reads a file of two thousand.
FEW = 10

HEAD = "import torch\n"

OPERATOR = '''

class Op{number}(torch.autograd.Function):
    """Multiplies the square of x by {number}."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * {number}.0

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 2 * x * {number}.0
'''


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time of all processes, and seconds on the clock."""

    processor_s: float
    clock_s: float


def write(folder: Path, operators: int, files: int) -> list[str]:
    """Write ``operators`` operators into ``files`` files; returns them as targets."""
    targets = []
    share = -(-operators // files)
    for first in range(0, operators, share):
        numbers = range(first + 1, min(first + share, operators) + 1)
        path = folder / f"operators_{files}_{first}.py"
        path.write_text(HEAD + "".join(OPERATOR.format(number=number) for number in numbers))
        targets += [f"{path.name}:Op{number}" for number in numbers]
    return targets


def spread(targets: list[str], count: int) -> list[str]:
    """``count`` of ``targets`` at even distances; 0: all of them."""
    if count in (0, len(targets)):
        return targets
    return [targets[index * len(targets) // count] for index in range(count)]


def cost(folder: Path, targets: list[str], words: list[str]) -> Cost:
    """Of checking ``targets``, which all pass."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "gradlint", "check", *targets, *words, "--quiet"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    clock = time.monotonic() - started
    assert done.returncode == 0, done.stdout + done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(processor, clock)


def measured(folder: Path, operators: int, files: int, sample: int, words: list[str]) -> list[Cost]:
    """The cost of ten operators, and of ``sample`` operators, out of ``operators`` in ``files``."""
    targets = write(folder, operators, files)
    return [cost(folder, spread(targets, count), words) for count in (FEW, sample)]


def each(costs: list[Cost], count: int) -> float:
    """Seconds of processor time of one more operator."""
    few, many = costs
    return (many.processor_s - few.processor_s) / (count - FEW)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="many operators in one file")
    parser.add_argument("--operators", type=int, default=2000)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--sample", type=int, default=60, help="operators checked; 0: all")
    parser.add_argument("--select", default="", help="rules; default: all")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args(arguments)
    words = ["-j", str(chosen.jobs), "--seed", "1"]
    words += ["--select", chosen.select] if chosen.select else []
    count = chosen.sample or chosen.operators
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for files in (chosen.files, 1):
            found[files] = measured(Path(folder), chosen.operators, files, count, words)
    one, many = each(found[1], count), each(found[chosen.files], count)
    print(heading(f"{chosen.operators} operators, of which {count} are checked"))
    rows = [("files", f"{FEW} operators, s", f"{count} operators, s", "on the clock, s", "each, s")]
    for files, costs in found.items():
        few, all_ = costs
        numbers = (few.processor_s, all_.processor_s, all_.clock_s)
        rows.append((str(files), *(f"{x:.1f}" for x in numbers), f"{each(costs, count):.2f}"))
    print(table(rows))
    print(f"ratio {one / many:.2f} (goal: at most {GOAL:g})")
    return 0 if one <= GOAL * many else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What ``gradlint record`` costs the program that it watches, and which specs come of it.

Run it with ``python -m tests.benchmarks.recording [--rounds N]``. Each program below is run alone
and recorded, in turns, and measures the processor time of its own work, without what importing
takes; of each the least time counts, which other work of the machine does not change.

Goal: recorded programs take at most 1.1 times as long.

``python -m tests.benchmarks.recording --specs DIR`` checks the specs in DIR, that ``gradlint
record`` wrote, and counts those that run: that forward and backward of each sample do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gradlint.recording import run_program
from tests.benchmarks.support.measure import GRADLINT, heading, table

GOAL = 1.1

_START = """\
import sys
import time

import torch
from torch.autograd import Function

torch.manual_seed(0)
torch.set_num_threads(1)


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight)
        out = x @ weight.mT
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.mT @ x, grad.sum(0)


@torch.library.custom_op("measured::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def work():
"""
_END = """

work()
begun = time.process_time()
for _ in range({times}):
    work()
with open(sys.argv[1], "w") as file:
    file.write(str(time.process_time() - begun))
"""

#: Program → what it does over and over, and how often.
PROGRAMS = {
    # The least that a call can be: no other work at all.
    "1,000 calls on 4 numbers, forward and backward": (
        """\
    x = torch.ones(4, requires_grad=True)
    for _ in range(1000):
        Scale.apply(x, 2.0).sum().backward()
""",
        12,
    ),
    "1,000 calls on 4 numbers without gradients": (
        """\
    x = torch.ones(4)
    for _ in range(1000):
        Scale.apply(x, 2.0)
""",
        30,
    ),
    "another size and another number in each of 1,000 calls": (
        """\
    for n in range(1, 1001):
        Scale.apply(torch.ones(n, requires_grad=True), n).sum().backward()
""",
        12,
    ),
    "1,000 calls of a registered operator": (
        """\
    x = torch.ones(4)
    for _ in range(1000):
        twice(x)
""",
        12,
    ),
    "training steps of three layers, batches of 32": (
        """\
    weights = [torch.randn(64, 64, requires_grad=True) for _ in range(3)]
    biases = [torch.randn(64, requires_grad=True) for _ in range(3)]
    optimizer = torch.optim.SGD([*weights, *biases], lr=1e-4)
    for _ in range(50):
        x = torch.randn(32, 64)
        for weight, bias in zip(weights, biases):
            x = Linear.apply(x, weight, bias).tanh()
        optimizer.zero_grad()
        x.square().mean().backward()
        optimizer.step()
""",
        12,
    ),
    "ten calls on 16 million numbers": (
        """\
    x = torch.ones(1 << 24, requires_grad=True)
    for _ in range(10):
        Scale.apply(x, 2.0).sum().backward()
""",
        2,
    ),
}


def seconds(program: str, *, recorded: bool, share: float = 1.0) -> float:
    """The processor time that a program of :data:`PROGRAMS` takes for its work."""
    body, times = PROGRAMS[program]
    with tempfile.TemporaryDirectory() as folder:
        path, result = Path(folder, "program.py"), Path(folder, "seconds.txt")
        end = _END.format(times=max(1, round(times * share)))
        path.write_text(_START + body + end, encoding="utf-8")
        command = [sys.executable, str(path), str(result)]
        if recorded:
            scratch = os.path.join(folder, "scratch")
            os.makedirs(scratch)
            code = run_program(command, scratch)
        else:
            code = subprocess.run(command).returncode
        assert code == 0, f"{program}: {code}"
        return float(result.read_text(encoding="utf-8"))


def ratios(rounds: int, share: float = 1.0) -> Mapping[str, tuple[float, float]]:
    """Program → its least time alone, and recorded."""
    found = {}
    for program in PROGRAMS:
        alone, recorded = [], []
        for _ in range(rounds):
            alone.append(seconds(program, recorded=False, share=share))
            recorded.append(seconds(program, recorded=True, share=share))
        found[program] = min(alone), min(recorded)
    return found


def running(folder: str) -> dict[str, str]:
    """Spec in ``folder`` → "" if every sample runs, else the code of what says that it does not."""
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "report.json")
        words = ["check", folder, "--select", "GL0,GL1", "--seed", "0", "--fail-on", "error"]
        subprocess.run([*GRADLINT, *words, "--output-format", "json", "-o", report], check=False)
        found = json.loads(Path(report).read_text(encoding="utf-8"))
    stopping = {"GL001", "GL002", "GL003", "GL005", "GL006", "GL007"}
    return {
        target["target"]: next(
            (item["code"] for item in target["findings"] if item["code"] in stopping), ""
        )
        for target in found["targets"]
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--specs", default="")
    options = parser.parse_args()
    if options.specs:
        print(heading(f"Specs of {options.specs}"))
        found = running(options.specs)
        print(table([("spec", "runs"), *((name, why or "yes") for name, why in found.items())]))
        print(f"{sum(not why for why in found.values())} of {len(found)} run")
        return
    rows = [("program", "alone s", "recorded s", "ratio", f"goal {GOAL}")]
    for program, (alone, recorded) in ratios(options.rounds).items():
        ratio = recorded / alone
        met = "met" if ratio <= GOAL else "missed"
        rows.append((program, f"{alone:.3f}", f"{recorded:.3f}", f"{ratio:.2f}", met))
    print(heading(f"Recorded programs, least of {options.rounds} rounds"))
    print(table(rows))


if __name__ == "__main__":
    main()

"""What a verdict costs: calls, memory and time beside ``torch.autograd.gradcheck``.

Run it with ``python -m tests.benchmarks.cost [--size N]``. An elementwise operator of 10⁶ float64
elements that passes, by four checkers; layer norm of 32×128 beside slow mode; and one wrong
element of 10⁶ to be named. Times are medians of rounds in which the checkers take turns, with one
thread (several wait for each other on a busy machine); memory is the process's high-water mark
above what it held before, in tensors as large as the input.

Goals: 40 forward and 30 backward calls, 12 tensors, 6 times fast mode; 50 times faster than slow
mode; 250 forward calls to name the element.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

import gradlint
from gradlint.model.op import Op
from gradlint.model.sample import Sample
from gradlint.trace.problem import Problem
from tests.benchmarks.support.faults import FLIPPED, ZEROED, faulty
from tests.benchmarks.support.measure import heading, markdown, spaced, table
from tests.benchmarks.support.operators import judged

ROOT = Path(__file__).resolve().parents[2]

GOAL_FORWARD, GOAL_BACKWARD, GOAL_TENSORS, GOAL_TIME = 40, 30, 12, 6.0
GOAL_SLOW = 50.0
GOAL_LOCATE = 250
ROUNDS = 5
LAYER_NORM = (32, 128)

#: Places of wrong elements, as shares of the size.
PLACES = (0.0, 0.123456, 0.5, 0.765432, 1.0)


class Counted(torch.autograd.Function):
    """x·sin(x), counting its calls; ``fault`` and ``place`` make one element wrong."""

    forwards = 0
    backwards = 0
    fault: str | None = None
    place = 0

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        Counted.forwards += 1
        ctx.save_for_backward(x)
        return x * torch.sin(x)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        Counted.backwards += 1
        (x,) = ctx.saved_tensors
        found = grad * (torch.sin(x) + x * torch.cos(x))
        return found if Counted.fault is None else faulty(found, Counted.fault, Counted.place)


def sample_of(size: int) -> torch.Tensor:
    """The input: float64, requires grad."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(size, generator=generator, dtype=torch.float64).requires_grad_()


def by_judgement(function: Callable[..., Any], *inputs: torch.Tensor) -> bool:
    """The judgement behind GL401."""
    op = Op("op", "op", "callable", function)
    decision = judged(Problem(op, Sample("s", "benchmark", inputs), seed=0), seed=0)
    assert decision is not None
    return set(decision.verdicts) == {"agrees"}


def by_gradcheck(function: Callable[..., Any], *inputs: torch.Tensor) -> bool:
    """``gradlint.gradcheck``."""
    return gradlint.gradcheck(function, inputs, raise_exception=False)


def by_check(function: Callable[..., Any], *inputs: torch.Tensor) -> bool:
    """``gradlint.check``, every rule of first order."""
    return gradlint.check(function, [inputs], order=1, seed=0).ok


def by_fast_mode(function: Callable[..., Any], *inputs: torch.Tensor) -> bool:
    """``torch.autograd.gradcheck`` in fast mode."""
    return torch.autograd.gradcheck(function, inputs, fast_mode=True)


def by_slow_mode(function: Callable[..., Any], *inputs: torch.Tensor) -> bool:
    """``torch.autograd.gradcheck`` in slow mode."""
    return torch.autograd.gradcheck(function, inputs)


CHECKERS: dict[str, Callable[..., bool]] = {
    "gradcheck, fast mode": by_fast_mode,
    "judgement behind GL401": by_judgement,
    "gradlint.gradcheck": by_gradcheck,
    "gradlint.check, order 1": by_check,
}


def calls(checker: str, size: int) -> tuple[int, int]:
    """Forward and backward calls that ``checker`` makes while the operator passes."""
    Counted.forwards = Counted.backwards = 0
    if not CHECKERS[checker](Counted.apply, sample_of(size)):
        raise SystemExit(f"{checker} does not pass the operator")
    return Counted.forwards, Counted.backwards


def tensors(checker: str, size: int) -> float:
    """Peak memory of ``checker`` beyond the input, in tensors as large as it. Linux only."""
    calls(checker, 100)  # imports, and what is allocated once
    x = sample_of(size)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the high-water mark
    before = _memory("VmRSS")
    CHECKERS[checker](Counted.apply, x)
    return (_memory("VmHWM") - before) / (8 * size)


def _memory(what: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what + ":"):
            return 1024 * int(line.split()[1])
    raise SystemExit(f"no {what} in /proc/self/status")


def in_turns(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each case; one round more warms up."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            started = time.perf_counter()
            case()
            if number:
                taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in taken.items()}


def name_element(size: int, fault: str, share: float) -> tuple[bool, int, int]:
    """Whether GL401 names the wrong element exactly, with its forward and backward calls."""
    place = round(share * (size - 1))
    x = sample_of(size)
    with torch.no_grad():
        x[place] = 1.0  # where the gradient is sizeable
    Counted.forwards = Counted.backwards = 0
    Counted.fault, Counted.place = fault, place
    try:
        report = gradlint.check(Counted, [(x,)], select=["GL401"], order=1, seed=0)
    finally:
        Counted.fault = None
    named = [finding.index for finding in report.findings if finding.code == "GL401"]
    return named == [[place]], Counted.forwards, Counted.backwards


def layer_norm_times(rounds: int) -> dict[str, float]:
    """Seconds of the checkers, slow mode among them, on layer norm."""
    generator = torch.Generator().manual_seed(0)
    width = LAYER_NORM[-1]
    x, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in (LAYER_NORM, (width,), (width,))
    )

    def function(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (width,), weight, bias)

    cases = {"gradcheck, slow mode": by_slow_mode, **CHECKERS}
    return in_turns({k: lambda c=c: c(function, x, weight, bias) for k, c in cases.items()}, rounds)


def elementwise_rows(size: int, rounds: int) -> list[tuple[str, ...]]:
    """The table of the elementwise operator."""
    x = sample_of(size)
    times = in_turns({k: lambda c=c: c(Counted.apply, x) for k, c in CHECKERS.items()}, rounds)
    fast = times["gradcheck, fast mode"]
    found: list[tuple[str, ...]] = [
        (
            f"x·sin(x), {spaced(size)} elements",
            "forward",
            "backward",
            "tensors",
            "time",
        ),
        ("goal", f"{GOAL_FORWARD}", f"{GOAL_BACKWARD}", f"{GOAL_TENSORS}", f"{GOAL_TIME:g} ×"),
    ]
    for checker in CHECKERS:
        forward, backward = calls(checker, size)
        memory = json.loads(_alone("tensors", checker, size))
        ratio = f"{times[checker] / fast:.1f} × ({1000 * times[checker]:.0f} ms)"
        found.append((checker, str(forward), str(backward), f"{memory:.1f}", ratio))
    return found


def _alone(what: str, checker: str, size: int) -> str:
    """Run one measurement of this file in a process of its own."""
    command = [
        *(sys.executable, "-W", "ignore", "-m", "tests.benchmarks.cost"),
        *(f"--{what}", checker, "--size", str(size)),
    ]
    # Otherwise glibc keeps large blocks for later use, and memory that is free counts as taken.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT
    )
    return done.stdout


def layer_norm_rows(rounds: int) -> list[tuple[str, ...]]:
    """The table of layer norm."""
    times = layer_norm_times(rounds)
    slow = times["gradcheck, slow mode"]
    found: list[tuple[str, ...]] = [
        (f"layer norm, {LAYER_NORM[0]}×{LAYER_NORM[1]}", "seconds", "slow mode takes", "goal")
    ]
    for checker, seconds in times.items():
        ours = "GL401" in checker or "gradlint.gradcheck" in checker
        goal = f"{GOAL_SLOW:g} ×" if ours else ""
        found.append((checker, f"{seconds:.3f}", f"{slow / seconds:.0f} ×", goal))
    return found


def locate_rows(size: int) -> list[tuple[str, ...]]:
    """The table of the wrong element."""
    found: list[tuple[str, ...]] = [
        ("one wrong element", "named exactly", "forward, most", f"goal {GOAL_LOCATE}")
    ]
    for fault in (ZEROED, FLIPPED):
        results = [name_element(size, fault, share) for share in PLACES]
        right = sum(exact for exact, _, _ in results)
        most = max(forward for _, forward, _ in results)
        verdict = "met" if right == len(results) and most <= GOAL_LOCATE else "missed"
        found.append((fault, f"{right} of {len(results)}", str(most), verdict))
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="what a verdict costs")
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--markdown", action="store_true", help="tables in Markdown")
    parser.add_argument("--tensors", metavar="CHECKER", help="that checker's memory, and no more")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if chosen.tensors:
        print(tensors(chosen.tensors, chosen.size))
        return
    shown = markdown if chosen.markdown else table
    print(heading(f"Cost of a verdict, medians of {chosen.rounds} rounds"))
    for found in (
        elementwise_rows(chosen.size, chosen.rounds),
        layer_norm_rows(min(chosen.rounds, 3)),
        locate_rows(chosen.size),
    ):
        print(shown(found), "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

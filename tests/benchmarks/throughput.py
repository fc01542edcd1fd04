"""Operators a second and core, in a folder of many small ones, right and wrong.

Run it with ``python -m tests.benchmarks.throughput [--operators 300] [--jobs 2] [--against REV]``.
It writes operators from templates into files of one to twenty, about a third of them wrong, and
checks the folder by all rules with an empty cache, once more with the cache that this leaves, and
by the rules of first order alone. What a run costs whatever their number is measured with a folder
of ten and taken off. Times are of the processor, of gradlint with all its processes, and are given
as ratios to ``import torch`` in the same minutes: machines differ, and other work slows them. With
``--against`` the same is done by another revision, in a worktree of its own; one that has no cache
is measured without.

Goals: a second run takes at most 5 % of the first; the process that reports stays under 400 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.support.measure import heading, table

#: The largest share of the first run that the second may take, and megabytes of the parent.
GOAL_SHARE, GOAL_MB = 0.05, 400

#: Operators in the smaller folder.
FEW = 10

#: Operators of one file, at most; the share of them that is wrong.
MOST_IN_A_FILE, WRONG = 20, 1 / 3

#: Seconds between two looks at the memory of the parent.
LOOK_S = 0.2

ROOT = Path(__file__).parents[2]

#: What is measured → words of the command line.
KINDS = {"all rules": (), "first order": ("--order", "1", "--select", "GL1,GL2,GL4")}


@dataclass(frozen=True)
class Template:
    """A kind of operator.

    Args:
        arguments: of forward; saved: what it keeps.
        forward: an expression; right, wrong: what backward returns.
        samples: its arguments.
    """

    arguments: str
    saved: str
    forward: str
    right: str
    wrong: str
    samples: str


_X = "leaf(3, 4)"

#: ``{c}`` stands for a number that differs from operator to operator.
TEMPLATES = (
    Template("x", "x", "x * x * {c}", "g * 2 * x * {c}", "g * x * {c}", _X),
    Template("x", "x", "(x * {c}).sin()", "g * (x * {c}).cos() * {c}", "g * (x * {c}).cos()", _X),
    Template("x", "y", "(x * {c}).tanh()", "g * (1 - y * y) * {c}", "g * (1 - y) * {c}", _X),
    Template("x", "y", "torch.sigmoid({c} * x)", "g * y * (1 - y) * {c}", "g * y * {c}", _X),
    Template("x, w", "x, w", "x @ w * {c}", "g @ w.mT * {c}, x.mT @ g * {c}",
             "g @ w.mT * {c}, (x.mT @ g).mT * {c}", "leaf(3, 4), leaf(4, 4)"),
    Template("x, b", "x", "(x + b) * {c}", "g * {c}, g.sum(0) * {c}",
             "g * {c}, g.mean(0) * {c}", "leaf(3, 4), leaf(4)"),
    Template("x, w", "x, w", "x * w * {c}", "g * w * {c}, g * x * {c}",
             "g * x * {c}, g * w * {c}", "leaf(3, 4), leaf(3, 4) * 2"),
    Template("x", "x", "x.sum(1) * {c}", "g[:, None].expand_as(x) * {c}",
             "g[:, None].expand_as(x)", _X),
    Template("x", "y", "torch.softmax(x * {c}, -1)",
             "(g - (g * y).sum(-1, keepdim=True)) * y * {c}", "g * y * (1 - y) * {c}", _X),
    Template("x", "x", "x.mean() * {c}", "(g * {c} / x.numel()).expand_as(x)",
             "(g * {c}).expand_as(x)", _X),
)  # fmt: skip

HEAD = """\
import torch


def leaf(*sizes):
    numbers = torch.arange(1, 1 + torch.Size(sizes).numel(), dtype=torch.float64)
    return (numbers * 0.7).sin().reshape(sizes).requires_grad_()
"""

OPERATOR = """

class Op{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {arguments}):
        y = {forward}
        ctx.save_for_backward({saved})
        return y

    @staticmethod
    def backward(ctx, g):
        {unpacked} = ctx.saved_tensors
        return {backward}

    @staticmethod
    def sample_inputs():
        return ({samples},)
"""


def write(folder: Path, operators: int, seed: int = 1) -> dict[str, bool]:
    """Write operators into ``folder``; returns the target of each, and whether it is right."""
    folder.mkdir()
    draw = random.Random(seed)
    right: dict[str, bool] = {}
    while len(right) < operators:
        name = f"operators_{len(right):05}.py"
        parts = [HEAD]
        for _ in range(min(draw.randint(1, MOST_IN_A_FILE), operators - len(right))):
            template, good = draw.choice(TEMPLATES), draw.random() >= WRONG
            number, c = len(right), f"{draw.uniform(0.3, 2.0):.3f}"
            parts.append(
                OPERATOR.format(
                    number=number,
                    arguments=template.arguments,
                    saved=template.saved,
                    unpacked=template.saved if "," in template.saved else f"({template.saved},)",
                    forward=template.forward.format(c=c),
                    backward=(template.right if good else template.wrong).format(c=c),
                    samples=template.samples,
                )
            )
            right[f"{name}:Op{number}"] = good
        (folder / name).write_text("".join(parts))
    return right


@dataclass(frozen=True)
class Took:
    """A run: seconds of the processor and of the clock, the parent's peak memory, and verdicts."""

    processor_s: float
    clock_s: float
    parent_mb: float
    read: int
    verdicts: dict[str, str]


def took(folder: Path, words: list[str], root: Path) -> Took:
    """A run of the gradlint in ``root`` on ``folder``."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    report = folder.parent / "report.json"
    command = [sys.executable, "-m", "gradlint", "check", ".", "--seed", "1", "-q", *words]
    with subprocess.Popen(
        [*command, "--report", f"json={report}"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, peak_mb(process.pid))
            time.sleep(LOOK_S)
        assert process.stderr is not None
        told = process.stderr.read().decode()
    assert process.returncode in (0, 1), told
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    made = json.loads(report.read_text())
    verdicts = {target["target"]: target["verdict"] for target in made["targets"]}
    read = (made.get("cache") or {}).get("read", 0)
    return Took(processor, time.monotonic() - started, peak, read, verdicts)


def peak_mb(pid: int) -> float:
    """The most memory that a process held so far; 0 where that can't be read."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        text = Path(f"/proc/{pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0]) / 1e3
    return 0.0


def import_torch_s() -> float:
    """Seconds of the processor that ``import torch`` takes: the least of three."""
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import torch"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def has_cache(root: Path) -> bool:
    """Whether the command line of the gradlint in ``root`` knows ``--cache``."""
    asked = subprocess.run(
        [sys.executable, "-m", "gradlint", "check", "--help"],
        cwd=root.parent,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "--cache" in asked.stdout


@dataclass(frozen=True)
class Measured:
    """One revision: a run for each of :data:`KINDS` on few and on all, and one from the cache, if
    it has one."""

    few: dict[str, Took]
    all: dict[str, Took]
    cached: Took | None
    torch_s: float
    operators: int

    def each_s(self, kind: str) -> float:
        """Seconds of the processor of one more operator."""
        more = self.all[kind].processor_s - self.few[kind].processor_s
        return more / (self.operators - FEW)


def measured(place: Path, operators: int, jobs: int, root: Path) -> Measured:
    """Measure the gradlint in ``root``."""
    words = ["-j", str(jobs)]
    right = write(place / "many", operators)
    write(place / "few", FEW)
    cache = ["--cache", str(place / "kept")] if has_cache(root) else []
    few, all_ = {}, {}
    for kind, chosen in KINDS.items():
        more = [*words, *chosen, *(cache if not chosen else ())]
        few[kind] = took(place / "few", more, root)
        all_[kind] = took(place / "many", more, root)
        unlike = {
            target: verdict
            for target, verdict in all_[kind].verdicts.items()
            if (verdict == "fail") == right[target]
        }
        assert len(all_[kind].verdicts) == operators
        print(f"{kind}: {len(unlike)} of {operators} verdicts are not as meant", *unlike.items())
    cached = None
    if cache:
        cached = took(place / "many", [*words, *cache], root)
        assert cached.verdicts == all_["all rules"].verdicts
    return Measured(few, all_, cached, import_torch_s(), operators)


@contextlib.contextmanager
def revision(name: str, place: Path) -> Iterator[Path]:
    """A worktree of a revision of this repository."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--detach", str(place), name], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def rows_of(name: str, found: Measured) -> list[tuple[str, ...]]:
    """The rows of the table of one revision."""
    rows = []
    for kind in KINDS:
        each = found.each_s(kind)
        rows.append(
            (
                name,
                kind,
                f"{1 / each:.2f}",
                f"{each / found.torch_s:.2f}",
                f"{found.few[kind].processor_s / found.torch_s:.1f}",
                f"{found.all[kind].parent_mb:.0f}",
            )
        )
    if found.cached is not None:
        share = found.cached.processor_s / found.all["all rules"].processor_s
        rows.append(
            (
                name,
                f"from the cache, {100 * share:.1f} % of the first run",
                f"{found.operators / found.cached.processor_s:.0f}",
                f"{found.cached.processor_s / found.operators / found.torch_s:.4f}",
                "",
                f"{found.cached.parent_mb:.0f}",
            )
        )
    return rows


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="operators a second and core")
    parser.add_argument("--operators", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--against", default="", help="a revision that is measured, too")
    chosen = parser.parse_args(arguments)
    found: dict[str, Measured] = {}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "this").mkdir()
        found["this"] = measured(Path(folder) / "this", chosen.operators, chosen.jobs, ROOT)
        if chosen.against:
            (Path(folder) / "other").mkdir()
            with revision(chosen.against, Path(folder) / "worktree") as root:
                found[chosen.against] = measured(
                    Path(folder) / "other", chosen.operators, chosen.jobs, root
                )
    print(heading(f"{chosen.operators} operators, {chosen.jobs} workers at a time"))
    names = (
        *("revision", "rules", "operators a second and core", "one, in `import torch`"),
        *(f"a run of {FEW}, in `import torch`", "parent, MB"),
    )
    print(table([names, *(row for name, item in found.items() for row in rows_of(name, item))]))
    ours = found["this"]
    if chosen.against:
        for kind in KINDS:
            ratio = ours.each_s(kind) / ours.torch_s
            ratio /= found[chosen.against].each_s(kind) / found[chosen.against].torch_s
            print(f"{kind}: one operator takes {100 * ratio:.0f} % of what {chosen.against} takes")
    assert ours.cached is not None
    share = ours.cached.processor_s / ours.all["all rules"].processor_s
    return int(share > GOAL_SHARE or ours.all["all rules"].parent_mb > GOAL_MB)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Two hundred operators on a Dask cluster, a worker of which is lost, as is the scheduler.

Run it with ``python -m tests.benchmarks.clustered [--operators 200] [--workers 4] [--seconds 1]
[--lose]``. Each operator sleeps so long that a check takes about that many seconds. It prints how
long the items took together, how long the run took from the first result to the last in terms of
that time shared by all workers, and with ``--lose``, where a worker is killed after a tenth of the
operators and the scheduler after half of them, whether each has one result and whether the report
is that of one machine.

Goals: 1.3 times the ideal time without losses; with losses no result lost, none twice, and the
report equal to the local one.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from pathlib import Path

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running.run import execute
from tests.benchmarks.support.measure import heading, table
from tests.running.dask_cluster import Cluster
from tests.running.test_cluster import without_times

#: The largest ratio that is accepted.
GOAL = 1.3

OPERATOR = """
class Op{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        time.sleep({seconds})
        return x * {number}.0

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * {claimed}.0

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 6, dtype=torch.float64, requires_grad=True),)

"""

#: Calls of forward that GL401 and what it needs make of such an operator.
CALLS = 40


def write(folder: Path, operators: int, seconds: float) -> None:
    """Every tenth operator is wrong."""
    texts = [
        OPERATOR.format(
            number=number,
            claimed=number + (number % 10 == 0),
            seconds=seconds / CALLS,
        )
        for number in range(1, operators + 1)
    ]
    (folder / "ops.py").write_text("import time\n\nimport torch\n\n" + "".join(texts))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="many operators on a cluster")
    parser.add_argument("--operators", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--lose", action="store_true")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "project"
        folder.mkdir()
        os.chdir(folder)
        write(folder, chosen.operators, chosen.seconds)
        cluster = Cluster(folder, Path(place) / "logs")
        try:
            return _run(cluster, chosen)
        finally:
            cluster.end()
            os.chdir(place)


def _run(cluster: Cluster, chosen: argparse.Namespace) -> int:
    for _ in range(chosen.workers):
        cluster.start_worker()
    done: list[tuple[str, float]] = []

    def progress(count: int, total: int, report: TargetReport) -> None:
        done.append((report.target, time.monotonic()))
        if chosen.lose and len(done) == total // 10:
            cluster.kill_worker(0)
        if chosen.lose and len(done) == total // 2:
            cluster.kill_scheduler()
            cluster.start_scheduler()
            for _ in range(chosen.workers):
                cluster.start_worker()

    local = Settings(select=("GL401",), seed=1, jobs=chosen.workers)
    settings = dataclasses.replace(local, cluster=cluster.address)
    run = execute(["ops.py"], settings, on_progress=progress)
    assert (run.usage, run.internal) == ([], []), (run.usage, run.internal)
    names = [name for name, _ in done]
    # The first results come when the workers have loaded torch: what they did before counts too.
    items = sum(target.duration_s for target in run.report.targets)
    first = items / len(done)
    clock = done[-1][1] - done[0][1] + first
    ratio = clock * chosen.workers / items
    print(heading(f"{chosen.operators} operators, {chosen.workers} workers"))
    rows = [
        ("results", f"{len(names)}, {len(set(names))} distinct"),
        ("items together", f"{items:.0f} s"),
        ("from the first to the last result", f"{clock:.0f} s"),
        ("in terms of the ideal time", f"{ratio:.2f}"),
    ]
    failed = sorted(names) != sorted(target.target for target in run.report.targets)
    if chosen.lose:
        same = without_times(run.report) == without_times(execute(["ops.py"], local).report)
        rows.append(("report of one machine", "equal" if same else "different"))
        failed = failed or not same
    print(table([("", "measured"), *rows]))
    return int(failed or (not chosen.lose and ratio > GOAL))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

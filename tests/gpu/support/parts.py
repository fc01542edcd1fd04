"""The parts of the GPU suite: each runs a command and reads what it found."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from gradlint.model.settings import DTYPES
from tests.gpu.support.table import Row
from tests.kernels.support import triton_examples
from tests.kernels.support.faulty import TWINS, Twin

#: Seconds for a stage: a machine that is lent may take ten minutes for a command, and the clock
#: runs before and after this program does.
BUDGET_S = 520.0

#: Seconds of a stage that are left for what comes after a part.
RESERVE_S = 10.0

#: Seconds that one group of twins may take under a sanitizer: a hang must not eat the stage.
SANITIZER_S = 90.0

GRADLINT = (sys.executable, "-m", "gradlint")

#: Tools of compute-sanitizer under which twins show.
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

#: The tests marked ``cuda``. Named, as others import packages that such a machine may lack.
PATHS = ("tests/kernels/test_on_cuda.py", "tests/rules/device", "tests/rules/shape")

#: What GL806 needs, most of a GPU's memory, no other worker may use meanwhile.
ALONE = "GL806"


@dataclasses.dataclass(frozen=True)
class Where:
    """Where the suite runs: ``device``, and whether that is a ``rehearsal``."""

    device: str = "cuda"
    rehearsal: bool = False


class Commands:
    """Runs commands within the budget.

    Args:
        folder: of the logs.
        started: when the stage was, by the monotonic clock.
        where: it runs.
    """

    def __init__(self, folder: Path, started: float, where: Where | None = None) -> None:
        self.folder = folder
        self.where = where or Where()
        self._started = started

    def run(
        self, name: str, command: Sequence[str], limit: float | None = None
    ) -> tuple[int | None, float]:
        """Exit code (None: out of time) and seconds; what it printed is in ``name``.out and
        ``name``.err."""
        left = BUDGET_S - RESERVE_S - (time.monotonic() - self._started)
        began = time.monotonic()
        if left <= 0:
            return None, 0.0
        print(f"{name} …", flush=True)
        out, err = (self.folder / f"{name}.{ending}" for ending in ("out", "err"))
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                command, stdout=stdout, stderr=stderr, start_new_session=True
            )
            try:
                code: int | None = process.wait(left if limit is None else min(left, limit))
            except subprocess.TimeoutExpired:
                code = None
                process.send_signal(signal.SIGINT)  # gradlint and pytest end their workers
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5.0)
            finally:
                # Whatever it left: a worker under a sanitizer would keep the GPU.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return code, time.monotonic() - began

    def json(
        self, name: str, command: Sequence[str], limit: float | None = None
    ) -> tuple[Any, str, float]:
        """The JSON that a command printed; or None and why there is none; and seconds."""
        code, seconds = self.run(name, command, limit)
        if code is None:
            return None, "out of time", seconds
        try:
            return json.loads((self.folder / f"{name}.out").read_text()), "", seconds
        except ValueError:
            told = (self.folder / f"{name}.err").read_text(errors="replace").strip()
            last = told.splitlines()[-1:] or ["nothing printed"]
            return None, f"exit {code}: {last[0][:120]}", seconds


Part = Callable[[Commands], list[Row]]


def run_stage(stage: str, folder: Path, *, rehearse: bool = False) -> tuple[list[Row], float]:
    """Every part of a stage, in order, and how long it took; a part that fails does not stop the
    others. Each row is printed when it is known, and kept in ``folder``: a part that has rows there
    already, all as they must be, is not run again."""
    started = time.monotonic()
    commands = Commands(folder, started, Where("cpu", True) if rehearse else None)
    rows: list[Row] = []
    for part in STAGES[stage]:
        kept = folder / f"{stage}-{part.__name__}.json"
        found = _kept(kept)
        if not found or not all(row.ok for row in found):
            try:
                found = part(commands)
            except Exception as error:
                found = [Row(part.__name__, "", f"{type(error).__name__}: {error}", False)]
            kept.write_text(json.dumps([dataclasses.asdict(row) for row in found]))
        for row in found:
            mark = "  " if row.ok else "✗ "
            print(f"{mark}{row.part}: {row.item}: {row.result}", flush=True)
        rows += found
    return rows, time.monotonic() - started


def _kept(path: Path) -> list[Row]:
    try:
        return [Row(**row) for row in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError):
        return []


def archive(folder: Path) -> Path:
    """Everything in ``folder`` as one file beside it."""
    path = folder.with_name(folder.name + ".tar.gz")
    with tarfile.open(path, "w:gz") as packed:
        packed.add(folder, folder.name)
    return path


def probe(commands: Commands) -> list[Row]:
    """Versions, and whether the process that workers are forked from leaves CUDA alone: what began
    before a fork does not work after it."""
    code = (
        "import platform, sys, torch; import gradlint.running._preload; "
        "print(platform.python_version(), torch.__version__, torch.version.cuda); "
        "sys.exit(torch.cuda.is_initialized())"
    )
    exit_code, seconds = commands.run("probe", [sys.executable, "-c", code])
    told = (commands.folder / "probe.out").read_text().strip()
    rows = [Row("versions", "Python, PyTorch, CUDA", told or "nothing", bool(told), seconds)]
    good = exit_code == 0
    rows.append(Row("fork", "preload", "CUDA untouched" if good else f"exit {exit_code}", good))
    return rows


def build(commands: Commands) -> list[Row]:
    """``gradlint kernels build``; the faulty kernels are built when they are first checked."""
    device = commands.where.device
    command = [*GRADLINT, "kernels", "build", "--device", device]
    code, seconds = commands.run("build", command)
    result = "out of time" if code is None else "built" if code == 0 else f"exit {code}"
    return [Row("build", "kernels/", result, code == 0, seconds)]


def benchmark(commands: Commands) -> list[Row]:
    """``gradlint kernels bench`` in every dtype: slow is no fault here."""
    rows = []
    for dtype in DTYPES:
        rows += _benchmark(commands, dtype)
    return rows


def _benchmark(commands: Commands, dtype: str) -> list[Row]:
    where = commands.where
    command = [*GRADLINT, "kernels", "bench", "--device", where.device, "--dtype", dtype]
    command += ["--output-format", "json"]
    if where.rehearsal:
        command += ["--elements", "2^14", "--matrix", "16", "--op", "relu,layer_norm"]
    found, why, seconds = commands.json(f"bench-{dtype}", command)
    if found is None:
        return [Row("bench", dtype, why, False, seconds)]
    copied = f"copy {found['copy_bytes_per_s'] / 1e9:.0f} GB/s"
    rows = [Row("bench", f"{found['dtype']}", copied, True, seconds)]
    for item in found["rows"]:
        eager = item.get("eager_seconds")
        beside = f", {eager / item['seconds']:.2f} × eager PyTorch" if eager else ""
        share = item.get("of_floor")
        floor = f", {100 * share:.0f}% of the floor" if share else ""
        name = f"{item['operator']} {item['pass']} {found['dtype']}"
        rows.append(Row("bench", name, f"{1e3 * item['seconds']:.3f} ms{floor}{beside}"))
    return rows


def agreement(commands: Commands) -> list[Row]:
    """CUDA against the CPU, for every operator and dtype."""
    command = [sys.executable, "-m", "tests.kernels.support.agreement", commands.where.device]
    found, why, seconds = commands.json("agreement", command)
    if found is None:
        return [Row("CPU and CUDA", "all operators", why, False, seconds)]
    bad = {name: share for name, share in found.items() if not share <= 1.0}
    counted = f"{len(found) - len(bad)} of {len(found)} (operator, dtype) agree"
    rows = [Row("CPU and CUDA", "all operators", counted, not bad, seconds)]
    for name, share in bad.items():
        rows.append(Row("CPU and CUDA", name, f"{share:.3g} of what is allowed", False))
    return rows


def specs(commands: Commands) -> list[Row]:
    """``gradlint check specs``, all that can go side by side."""
    return _specs(commands, "specs", "8", "--ignore", ALONE)


def index_overflow(commands: Commands) -> list[Row]:
    """GL806 alone: one of its cases takes most of a GPU's memory."""
    return _specs(commands, "large", "1", "--select", ALONE)


def _specs(commands: Commands, name: str, jobs: str, *options: str) -> list[Row]:
    where = commands.where
    targets = ["specs/relu.yaml", "specs/scale.yaml"] if where.rehearsal else ["specs"]
    more = ["--dtype", "float32"] if where.rehearsal else []
    command = _check(where, targets, "--require-device", "-j", jobs, *options, *more)
    found, why, seconds = commands.json(name, command)
    if found is None:
        return [Row("check", name, why, False, seconds)]
    # Alone, GL806 may be skipped; on the CPU no operator is judged by it.
    right = ("pass",) if name == "specs" else ("pass", "skipped")
    right += ("inconclusive",) if where.rehearsal else ()
    rows = [
        Row("check", Path(target["target"]).stem, target["verdict"], target["verdict"] in right)
        for target in found["targets"]
    ]
    bad = sum(1 for row in rows if not row.ok)
    total = Row("check", name, f"{len(rows) - bad} of {len(rows)} pass", not bad, seconds)
    return [total, *(row for row in rows if not row.ok)]


def tests(commands: Commands) -> list[Row]:
    """Every test marked ``cuda``; those that repeat the agreement are left out."""
    report = commands.folder / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", "-k", "not test_it_agrees_with_the_cpu", *PATHS]
    code, seconds = commands.run("tests", command)
    if code is None or not report.is_file():
        why = "out of time" if code is None else f"exit {code}"
        return [Row("tests", "marked cuda", why, False, seconds)]
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    numbers = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    passed = numbers["tests"] - numbers["failures"] - numbers["errors"] - numbers["skipped"]
    failed = numbers["failures"] + numbers["errors"]
    result = f"{passed} passed, {failed} failed, {numbers['skipped']} skipped"
    # In a rehearsal all of them are collected, and skipped for want of a GPU.
    some = passed > 0 or (commands.where.rehearsal and numbers["skipped"] > 0)
    return [Row("tests", "marked cuda", result, code == 0 and some, seconds)]


def twins(commands: Commands) -> list[Row]:
    """The faulty twins, each where it shows."""
    rows: list[Row] = []
    for shows in dict.fromkeys(where for twin in TWINS for where in twin.where()):
        group = [twin for twin in TWINS if shows in twin.where()]
        reason = _unfit(shows, commands.where)
        if reason:
            rows += [Row("faulty twin", twin.name, f"skipped: {reason}") for twin in group]
            continue
        for dtype in dict.fromkeys(twin.dtype for twin in group):
            some = [twin for twin in group if twin.dtype == dtype]
            rows += _checked_twins(commands, some, shows, dtype)
    return rows


def _checked_twins(commands: Commands, group: Sequence[Twin], shows: str, dtype: str) -> list[Row]:
    paths = [str(twin.spec.relative_to(Path.cwd())) for twin in group]
    more = ["--sanitizer", shows, "--select", "GL401"] if shows in TOOLS else ["--ignore", "GL9"]
    command = _check(commands.where, paths, "--dtype", dtype, *more)
    limit = SANITIZER_S if shows in TOOLS else None
    found, why, seconds = commands.json(f"twins-{shows.replace(' ', '-')}-{dtype}", command, limit)
    if found is None:
        return [Row("faulty twin", twin.name, why, False, seconds) for twin in group]
    rows = []
    for twin, target in zip(group, found["targets"], strict=True):
        codes = sorted({f["code"] for f in target["findings"] if f["severity"] != "info"})
        expected = ("GL805",) if shows in TOOLS else (*twin.codes, *twin.crashes)
        caught = not set(codes).isdisjoint(expected)
        result = f"{', '.join(codes) or 'nothing found'} (expected {' or '.join(expected)})"
        rows.append(Row("faulty twin", twin.name, result, caught))
    return rows


def triton(commands: Commands) -> list[Row]:
    """``examples/triton``: right kernels and faulty twins; in a rehearsal by Triton's
    interpreter."""
    where, name = commands.where, "examples/triton"
    if triton_examples.MISSING:
        return [Row("triton", name, f"skipped: {triton_examples.MISSING}")]
    more = ["--triton-interpret"] if where.rehearsal else ["--require-device"]
    right = triton_examples.right_specs()
    if where.rehearsal:
        right = right[-1:]
        more += ["--dtype", "float64", "--select", "GL404"]
    rows = _triton_rows(commands, "triton", right, more, dict.fromkeys(right, ("pass",)))
    if where.rehearsal:
        more = [*more[:-4], "--select", "GL404,GL806"]
    twins = {twin.spec: twin.codes for twin in triton_examples.TWINS}
    return rows + _triton_rows(commands, "triton-twins", list(twins), more, twins)


def _triton_rows(
    commands: Commands,
    name: str,
    paths: Sequence[str],
    options: Sequence[str],
    expected: Mapping[str, tuple[str, ...]],
) -> list[Row]:
    """A row for each of ``paths``, by its verdict and the codes of what was found; one of those
    ``expected`` must be among them."""
    command = _check(commands.where, paths, "-j", "1", *options)
    found, why, seconds = commands.json(name, command)
    if found is None:
        return [Row("triton", name, why, False, seconds)]
    rows = []
    for path, target in zip(paths, found["targets"], strict=True):
        codes = sorted({f["code"] for f in target["findings"] if f["severity"] != "info"})
        good = not {target["verdict"], *codes}.isdisjoint(expected[path])
        # What a rehearsal leaves out can't find the twin that shows there alone.
        good |= commands.where.rehearsal and not codes and target["verdict"] != "error"
        result = f"{target['verdict']}: {', '.join(codes)}" if codes else target["verdict"]
        rows.append(Row("triton", path.removeprefix("examples/triton/"), result, good))
    return [Row("triton", name, f"{len(rows)} operators", True, seconds), *rows]


def _unfit(shows: str, where: Where) -> str:
    import torch

    if where.rehearsal and shows != "host":
        return "a rehearsal has no GPU"
    if shows == "two GPUs" and torch.cuda.device_count() < 2:
        return "one GPU only"
    if shows in TOOLS:
        from gradlint.base.errors import GradlintError
        from gradlint.running import _sanitizer

        try:
            _sanitizer.program()
        except GradlintError as error:
            return error.message
    return ""


def _check(where: Where, targets: Sequence[str], *options: str) -> list[str]:
    common = ["--device", where.device, "--seed", "1", "--output-format", "json"]
    return [*GRADLINT, "check", *targets, *common, *options]


#: By the name of the stage: its parts. What says most comes first.
STAGES: dict[str, tuple[Part, ...]] = {
    "A": (probe, build, benchmark, agreement),
    "B": (specs, tests, index_overflow),
    "C": (twins, triton),
}

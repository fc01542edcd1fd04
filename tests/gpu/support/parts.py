"""The parts of the GPU suite: each runs a command and reads what it found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.gpu.support.table import Row
from tests.kernels.support.faulty import TWINS, Twin

#: Seconds for the whole suite.
BUDGET_S = 600.0

#: Seconds that are left for what comes after a part.
RESERVE_S = 10.0

GRADLINT = (sys.executable, "-m", "gradlint")

#: Tools of compute-sanitizer under which twins show.
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


class Commands:
    """Runs commands within the budget. Args: ``folder`` of the logs, ``started`` of the suite."""

    def __init__(self, folder: Path, started: float) -> None:
        self.folder = folder
        self._started = started

    def run(self, name: str, command: Sequence[str]) -> tuple[int | None, float]:
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
                code: int | None = process.wait(left)
            except subprocess.TimeoutExpired:
                code = None
                process.send_signal(signal.SIGINT)  # gradlint and pytest end their workers
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5.0)
                process.kill()
        return code, time.monotonic() - began

    def json(self, name: str, command: Sequence[str]) -> tuple[Any, str, float]:
        """The JSON that a command printed; or None and why there is none; and seconds."""
        code, seconds = self.run(name, command)
        if code is None:
            return None, "out of time", seconds
        try:
            return json.loads((self.folder / f"{name}.out").read_text()), "", seconds
        except ValueError:
            told = (self.folder / f"{name}.err").read_text(errors="replace").strip()
            last = told.splitlines()[-1:] or ["nothing printed"]
            return None, f"exit {code}: {last[0][:120]}", seconds


def run_all(folder: Path, started: float) -> list[Row]:
    """Every part, in the order of the table; a part that fails does not stop the others."""
    commands = Commands(folder, started)
    parts: tuple[Callable[[Commands], list[Row]], ...] = (
        build,
        specs,
        twins,
        agreement,
        tests,
        benchmark,
    )
    rows: list[Row] = []
    for part in parts:
        rows += part(commands)
    return rows


def build(commands: Commands) -> list[Row]:
    """``gradlint kernels build``."""
    command = [*GRADLINT, "kernels", "build", "--device", "cuda"]
    code, seconds = commands.run("build", command)
    result = "out of time" if code is None else "built" if code == 0 else f"exit {code}"
    return [Row("build", "kernels/", result, code == 0, seconds)]


def specs(commands: Commands) -> list[Row]:
    """``gradlint check specs`` on CUDA."""
    found, why, seconds = commands.json("specs", _check(["specs"], "--require-device"))
    if found is None:
        return [Row("check", "specs", why, False, seconds)]
    rows = [
        Row("check", Path(target["target"]).stem, target["verdict"], target["verdict"] == "pass")
        for target in found["targets"]
    ]
    bad = sum(1 for row in rows if not row.ok)
    total = Row("check", "specs", f"{len(rows) - bad} of {len(rows)} pass", not bad, seconds)
    return [total, *(row for row in rows if not row.ok)]


def twins(commands: Commands) -> list[Row]:
    """The faulty twins, each where it shows."""
    rows: list[Row] = []
    for shows in dict.fromkeys(where for twin in TWINS for where in twin.where()):
        group = [twin for twin in TWINS if shows in twin.where()]
        reason = _unfit(shows)
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
    command = _check(paths, "--dtype", dtype, *more)
    found, why, seconds = commands.json(f"twins-{shows.replace(' ', '-')}-{dtype}", command)
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


def _unfit(shows: str) -> str:
    import torch

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


def agreement(commands: Commands) -> list[Row]:
    """CUDA against the CPU, for every operator and dtype."""
    command = [sys.executable, "-m", "tests.kernels.support.agreement", "cuda"]
    found, why, seconds = commands.json("agreement", command)
    if found is None:
        return [Row("CPU and CUDA", "all operators", why, False, seconds)]
    bad = {name: share for name, share in found.items() if not share <= 1.0}
    counted = f"{len(found) - len(bad)} of {len(found)} (operator, dtype) agree"
    rows = [Row("CPU and CUDA", "all operators", counted, not bad, seconds)]
    for name, share in bad.items():
        rows.append(Row("CPU and CUDA", name, f"{share:.3g} of what is allowed", False))
    return rows


def tests(commands: Commands) -> list[Row]:
    """Every test marked ``cuda``."""
    report = commands.folder / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "cuda", f"--junitxml={report}", "tests"]
    code, seconds = commands.run("tests", command)
    if code is None or not report.is_file():
        why = "out of time" if code is None else f"exit {code}"
        return [Row("tests", "marked cuda", why, False, seconds)]
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    numbers = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    passed = numbers["tests"] - numbers["failures"] - numbers["errors"] - numbers["skipped"]
    failed = numbers["failures"] + numbers["errors"]
    result = f"{passed} passed, {failed} failed, {numbers['skipped']} skipped"
    return [Row("tests", "marked cuda", result, code == 0 and passed > 0, seconds)]


def benchmark(commands: Commands) -> list[Row]:
    """``gradlint kernels bench``: a line for each operator and pass; slow is no fault here."""
    command = [*GRADLINT, "kernels", "bench", "--device", "cuda", "--output-format", "json"]
    found, why, seconds = commands.json("bench", command)
    if found is None:
        return [Row("bench", "all operators", why, False, seconds)]
    copied = f"copy {found['copy_bytes_per_s'] / 1e9:.0f} GB/s"
    rows = [Row("bench", f"{found['dtype']}", copied, True, seconds)]
    for item in found["rows"]:
        eager = item.get("eager_seconds")
        beside = f", {eager / item['seconds']:.2f} × eager PyTorch" if eager else ""
        share = item.get("of_floor")
        floor = f", {100 * share:.0f}% of the floor" if share else ""
        name = f"{item['operator']} {item['pass']}"
        rows.append(Row("bench", name, f"{1e3 * item['seconds']:.3f} ms{floor}{beside}"))
    return rows


def _check(targets: Sequence[str], *options: str) -> list[str]:
    common = ["--device", "cuda", "--seed", "1", "--output-format", "json"]
    return [*GRADLINT, "check", *targets, *common, *options]

"""Checks under NVIDIA's compute-sanitizer, and its reports as findings (GL805)."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gradlint.base.errors import GradlintError
from gradlint.base.scratch import scratch_folder
from gradlint.experiments.device.sanitizer_report import DeviceError, SanitizerReport, parse_report
from gradlint.model.op import OpRef
from gradlint.model.report import Check
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import select_rules
from gradlint.rules.device import memory_error
from gradlint.running._stack import Frame, place
from gradlint.running._task import TargetTask, Task
from gradlint.running.findings import relative
from gradlint.running.job import Job

PROGRAM = "compute-sanitizer"

#: Options, of release 2022.1 and later. Kernels are ended by their errors, not the whole context,
#: so that the check goes on; failing calls of CUDA's API are left to those who make them.
OPTIONS = (
    "--destroy-on-device-error=kernel",
    "--report-api-errors=no",
    "--show-backtrace=device",
    "--print-limit=1000",
    "--target-processes=all",
)

#: The time-out of a check is multiplied by this (heuristic: starting Python and loading torch
#: under the tool counts, and kernels run many times slower).
PATIENCE = 10.0

#: Makes every tensor an allocation of its own, whose bounds the tool knows.
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}

#: Bytes read of one report.
_MOST_BYTES = 1 << 24


@dataclass(frozen=True)
class Sanitizer:
    """A tool that workers run under. Args: path of the ``program``, ``tool`` of it, and the
    ``folder`` of its reports."""

    program: str
    tool: str
    folder: Path

    def interpreter(self, number: int) -> tuple[str, Path]:
        """A program that starts Python under the tool, and where the report will be."""
        report = self.folder / f"report-{number}.txt"
        words = [self.program, f"--tool={self.tool}", f"--log-file={report}", *OPTIONS]
        script = self.folder / f"python-{number}"
        script.write_text(
            f'#!/bin/sh\nexec {shlex.join([*words, sys.executable])} "$@"\n', encoding="utf-8"
        )
        script.chmod(0o700)
        return str(script), report


@contextmanager
def sanitizer(settings: Settings, *, present: bool) -> Iterator[Sanitizer | None]:
    """The sanitizer that ``settings`` asks for; None if none, or there is no device to watch.

    Args:
        present: whether a CUDA device is.

    Raises:
        GradlintError: the check is not asked to run on cuda, or the tool is not found.
    """
    if settings.sanitizer is None:
        yield None
        return
    if "cuda" not in settings.devices:
        raise GradlintError(
            f"{settings.sanitizer} watches kernels on cuda, and the check runs on "
            f"{', '.join(settings.devices)} only",
            place="--sanitizer",
            hint="add --device cuda",
        )
    if not present:
        yield None
        return
    with TemporaryDirectory(dir=scratch_folder()) as folder:
        yield Sanitizer(program(), settings.sanitizer, Path(folder))


def program() -> str:
    """Path of compute-sanitizer: on PATH, in CUDA_HOME, or beside nvcc."""
    if os.name == "nt":
        raise GradlintError("checks under a sanitizer need Linux", place="--sanitizer")
    folders = [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        folders.append(Path(nvcc).resolve().parent.parent)
    folders.append(Path("/usr/local/cuda"))
    looked = [str(folder / kind) for folder in folders for kind in ("bin", "compute-sanitizer")]
    found = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=os.pathsep.join(looked))
    if found is None:
        raise GradlintError(
            f"{PROGRAM} is not found: neither on PATH nor in {', '.join(dict.fromkeys(looked))}",
            place="--sanitizer",
            hint="it comes with the CUDA toolkit (package cuda-sanitizer); put it on PATH or set "
            "CUDA_HOME",
        )
    return found


class SanitizedTask(TargetTask):
    """Checks one operator in workers that a sanitizer watches."""

    def __init__(
        self, ref: OpRef, settings: Settings, *others: Any, sanitizer: Sanitizer, **options: Any
    ) -> None:
        super().__init__(ref, _with_probes(settings), *others, **options)
        self.timeout *= PATIENCE
        self._sanitizer = sanitizer
        self._reports: list[Path] = []

    def job(self) -> Job:
        """The usual job, under the tool."""
        interpreter, report = self._sanitizer.interpreter(_next_number(self._sanitizer.folder))
        self._reports.append(report)
        return replace(super().job(), environment=ENVIRONMENT, interpreter=interpreter)

    def _finish(self, *, interrupted: bool = False) -> list[Task]:
        if not interrupted and self.report.samples:
            self._judge([_read(path) for path in self._reports])
        return super()._finish(interrupted=interrupted)

    def _judge(self, reports: list[SanitizerReport]) -> None:
        tool = self._sanitizer.tool
        devices = [arg.device or "" for sample in self.report.samples for arg in sample.args]
        if not any(device.startswith("cuda") for device in devices):
            self.report.checks.append(Check("GL805", "skipped", note="no sample is on cuda"))
            return
        errors = [error for report in reports for error in report.errors]
        for error in errors:
            self._add_error(tool, error)
        troubles = list(dict.fromkeys(text for report in reports for text in report.troubles))
        untold = [report for report in reports if report.total is None]
        if errors:
            count = sum(error.count for error in errors)
            check = Check("GL805", "fail", note=f"{tool}: {count} errors")
        elif troubles or untold:
            what = troubles[0] if troubles else f"{PROGRAM} came to no summary"
            check = Check("GL805", "inconclusive", note=f"{tool}: {what}")
        else:
            check = Check("GL805", "pass", note=f"{tool}: no errors")
        self.report.checks.append(check)

    def _add_error(self, tool: str, error: DeviceError) -> None:
        location, excerpt = relative(self.ref.location), None
        if error.file and Path(error.file).is_file():
            location, excerpt = place(Frame(error.file, error.line, error.kernel))
        finding = memory_error.make_finding(
            self.ref.target, tool, error, self.settings, location=location, excerpt=excerpt
        )
        if finding not in self.report.findings:
            self.report.findings.append(finding)


def _with_probes(settings: Settings) -> Settings:
    """``settings``, under which some rule calls the op: ``--select GL805`` alone has none."""
    if any(rule.has_probe for rule in select_rules(settings)):
        return settings
    return replace(settings, select=None)


def _next_number(folder: Path) -> int:
    return sum(1 for _ in folder.glob("python-*"))


def _read(path: Path) -> SanitizerReport:
    text = ""
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as report:
        text = report.read(_MOST_BYTES)
    return parse_report(text)

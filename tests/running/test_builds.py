"""Operators that build an extension when they are first called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running import _builds
from gradlint.running.run import execute

BUILT = """
import subprocess
import torch

class Built(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        global ready
        if "ready" not in globals():
            subprocess.run([{program!r}], cwd={folder!r})
            ready = True
        return x * 2

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        return grad_output * 2
"""


def checked(folder: Path, program: str, seconds: float) -> TargetReport:
    """Forward runs a program of that name for some seconds; its time-out is 2 seconds."""
    built = folder / program
    built.write_text(f"#!/bin/sh\ntouch lock\nsleep {seconds} & wait\n", encoding="utf-8")
    built.chmod(0o755)
    file = folder / "built.py"
    file.write_text(BUILT.format(program=str(built), folder=str(folder)), encoding="utf-8")
    settings = Settings(timeout=2.0, seed=1, order=1, select=("GL103",))
    (report,) = execute([f"{file}:Built"], settings).report.targets
    return report


linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells it")


@linux
def test_the_time_of_a_build_does_not_count(tmp_path: Path) -> None:
    report = checked(tmp_path, "ninja", 4)
    assert report.findings == []
    assert report.verdict == "pass"


def test_that_of_any_other_program_does(tmp_path: Path) -> None:
    report = checked(tmp_path, "other", 4)
    assert [finding.code for finding in report.findings] == ["GL006"]
    assert (tmp_path / "lock").exists()


@linux
def test_a_build_that_is_ended_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_builds, "MOST_SECONDS", 1.0)
    report = checked(tmp_path, "ninja", 60)
    assert [finding.code for finding in report.findings] == ["GL006"]
    assert not (tmp_path / "lock").exists()


@linux
def test_builds_are_found_below_other_processes(tmp_path: Path) -> None:
    program = tmp_path / "ninja"
    program.write_text("#!/bin/sh\nsleep 60 & wait\n", encoding="utf-8")
    program.chmod(0o755)
    command = ["/bin/sh", "-c", f"{program}; true"]
    shell = subprocess.Popen(command, cwd=tmp_path, start_new_session=True)
    try:
        until = time.monotonic() + 10
        while not (found := _builds.below(shell.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        assert found == [tmp_path]
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    assert _builds.below(None) == []

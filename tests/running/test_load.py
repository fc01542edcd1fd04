"""Time-outs on a busy machine, and where a check chose the inputs."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.base import clock as base_clock
from gradlint.model.report import Check, Finding, TargetReport
from gradlint.model.settings import Settings
from gradlint.ops.patience import MOST_SLOW, NotTried, Patience
from gradlint.running import _process, _worker
from gradlint.running._collect import Collector
from gradlint.running.findings import at_guessed_inputs
from gradlint.running.run import execute

SLOW = """
import time
import torch


class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {body}
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64).requires_grad_(),)
"""

CRASHES_ON_INTEGERS = """
import os
import torch


class Picky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rows):
        if rows.dtype.is_floating_point:
            raise TypeError("rows must be integers")
        os.abort()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None
"""


class Busy:
    """A worker whose process waits for a processor; only what ``overdue`` reads."""

    ending = None
    timeout = 1.0
    _sender = 0
    _finished = False
    _kept = True
    grant = _process.Worker.grant
    overdue = _process.Worker.overdue
    _limit = _process.Worker._limit
    _queued_s = _process.Worker._queued_s

    def _building(self) -> list[Path]:
        return []


@pytest.mark.parametrize(("waited", "overdue"), [(0.0, True), (0.5, True), (2.0, False)])
def test_waiting_for_a_processor_does_not_count(
    waited: float, overdue: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, queued = [100.0], [7.0]
    monkeypatch.setattr(_process.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(base_clock, "queued_seconds", lambda pid: queued[0])
    worker = Busy()
    worker.grant()
    clock[0] += 0.9
    assert not worker.overdue()
    clock[0] += 1.0  # 1.9 seconds for a time-out of one
    queued[0] += waited
    assert worker.overdue() is overdue


def test_however_busy_the_machine_a_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(_process.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(base_clock, "queued_seconds", lambda pid: clock[0])
    worker = Busy()
    worker.grant()
    clock[0] = 10.9
    assert not worker.overdue()
    clock[0] = 11.1
    assert worker.overdue()


def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_patience_ends_a_long_call_and_then_refuses() -> None:
    patience = Patience(0.05)
    with patience.limit(lambda: "3"):
        burn(0.001)
    assert patience.note == ""
    for sizes in ("31 × 33", "1025"):
        with pytest.raises(NotTried), patience.limit(lambda sizes=sizes: sizes):
            burn(5.0)
    assert patience.note == "not tried: too slow at 31 × 33, 1025"
    assert len(patience.slow) == MOST_SLOW
    ran = []
    with pytest.raises(NotTried), patience.limit(lambda: "17"):
        ran.append(1)
    assert ran == []


def test_patience_leaves_sleep_and_catching_ops_to_others() -> None:
    with Patience(0.02).limit(lambda: "3"):
        time.sleep(0.1)  # no processor time: a busy machine looks the same

    ended = []

    def catches() -> None:
        try:
            burn(5.0)
            ended.append("first")
        except Exception:
            burn(5.0)
            ended.append("second")

    with pytest.raises(NotTried), Patience(0.05).limit(lambda: "3"):
        catches()
    assert ended == []


def checked(tmp_path: Path, name: str, body: str, **settings: object) -> TargetReport:
    file = tmp_path / f"{name.lower()}.py"
    file.write_text(SLOW.format(name=name, body=body), encoding="utf-8")
    made = replace(Settings(timeout=20.0, seed=1, order=1, ignore=("GL9",)), **settings)
    (report,) = execute([f"{file}:{name}"], made).report.targets
    return report


def test_a_loop_that_does_not_converge_for_large_values_is_not_tried(tmp_path: Path) -> None:
    report = checked(tmp_path, "Large", "while float(x.abs().max()) > 50.0: pass")
    assert [finding.code for finding in report.findings] == []
    assert report.verdict == "pass"
    notes = [check.note for check in report.checks if "not tried: too slow at" in check.note]
    assert notes
    assert "with values up to" in " ".join(notes)


def test_a_backward_that_is_slow_at_a_size_of_gradlints_raises_nothing(tmp_path: Path) -> None:
    file = tmp_path / "backward.py"
    body = SLOW.format(name="Backward", body="")
    slow = "        while len(grad_output) != 3: pass\n        return grad_output * 2"
    body = body.replace("        return grad_output * 2", slow)
    file.write_text(body, encoding="utf-8")
    settings = Settings(timeout=20.0, seed=1, order=1, select=("GL004", "GL401", "GL706"))
    (report,) = execute([f"{file}:Backward"], settings).report.targets
    assert report.findings == []
    notes = [check.note for check in report.checks if check.code == "GL706"]
    assert "not tried: too slow at" in " ".join(notes)


def test_a_loop_that_never_ends_at_the_sample_is_a_time_out(tmp_path: Path) -> None:
    report = checked(tmp_path, "Endless", "while True: pass", timeout=2.0)
    assert [finding.code for finding in report.findings] == ["GL006"]


def test_a_loop_that_never_ends_at_guessed_inputs_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "guessed.py"
    body = SLOW.format(name="Guessed", body="while float(x.abs().max()) < 1e6: pass")
    file.write_text(body.split("    @staticmethod\n    def sample_inputs")[0], encoding="utf-8")
    settings = Settings(timeout=2.0, seed=1, order=1)
    (report,) = execute([f"{file}:Guessed"], settings).report.targets
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("GL006", "warning")
    assert finding.evidence["while"] == "inputs were looked for"
    assert finding.evidence["inputs"] == "x: float (5, 7)"
    assert finding.help.startswith("the inputs were guessed: give others (--inputs); ")
    assert report.verdict == "error"


def test_memory_that_runs_out_while_inputs_are_looked_for_is_a_warning() -> None:
    """Guessed values may be sizes: the inputs that the op is meant for may avoid it. Where its own
    `sample_inputs` ran out, or the op crashed, nothing is excused."""
    for code, severity in (("GL007", "warning"), ("GL006", "warning"), ("GL005", "error")):
        finding = Finding(code, "name", "error", "m", help="look here")
        at_guessed_inputs(finding)
        assert (finding.code, finding.severity) == (code, severity)
        assert finding.evidence["while"] == "inputs were looked for"


def test_an_endless_sample_inputs_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "own_inputs.py"
    body = SLOW.format(name="Own", body="pass").replace(
        "return (", "while True: pass\n        return ("
    )
    file.write_text(body, encoding="utf-8")
    (report,) = execute([f"{file}:Own"], Settings(timeout=2.0, seed=1)).report.targets
    (finding,) = report.findings
    assert (finding.code, finding.severity) == ("GL006", "error")


def test_an_op_that_sleeps_where_a_check_chose_its_inputs_still_ends(tmp_path: Path) -> None:
    body = "time.sleep(60.0 if float(x.abs().max()) > 50.0 else 0.0)"
    started = time.monotonic()
    report = checked(tmp_path, "Sleeps", body, timeout=2.0, select=("GL1", "GL3", "GL4"))
    assert time.monotonic() - started < 50.0
    assert [finding.code for finding in report.findings] == []
    (note,) = {check.note for check in report.checks if check.note.startswith("not tried")}
    assert note == "not tried: forward took more than 2 s on inputs that this check chose"


def test_what_is_known_before_a_check_chooses_inputs() -> None:
    collector = Collector(TargetReport("t"), Settings())
    collector.current = ("GL706", "s")
    assert not collector.chose_inputs()  # the op has not returned yet
    collector.report.checks.append(Check("GL003", "pass", "s"))
    assert collector.chose_inputs()
    collector.current = ("GL501", "s")
    assert not collector.chose_inputs()


def test_a_crash_while_inputs_are_looked_for_tells_the_inputs(tmp_path: Path) -> None:
    file = tmp_path / "picky.py"
    file.write_text(CRASHES_ON_INTEGERS, encoding="utf-8")
    settings = Settings(timeout=20.0, seed=1, order=1)
    (report,) = execute([f"{file}:Picky"], settings).report.targets
    (finding,) = report.findings
    assert finding.code == "GL005"
    inputs = finding.evidence["inputs"]
    assert re.fullmatch(r"x: float \(\d+(, \d+)*\), rows: int \(\d+(, \d+)*\)", inputs)


def test_arguments_that_are_tried_are_cut_to_the_room_that_there_is() -> None:
    shared = bytearray(_worker.SHARED_BYTES)
    watch = _worker.PhaseWatch(shared)
    for text in ("é" * 1000, "x: float (2)"):
        watch.told(text)
        (size,) = _worker.SIZE.unpack_from(shared, _worker.TRIED)
        start = _worker.TRIED + _worker.SIZE.size
        assert start + size <= _worker.SHARED_BYTES
        kept = shared[start : start + size].decode("utf-8", "ignore")
        assert text.startswith(kept)
    assert kept == "x: float (2)"

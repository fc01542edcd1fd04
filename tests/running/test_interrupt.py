"""Whatever ends gradlint ends everything that it started, and what is known is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")

#: Seconds after which waiting is given up: far more than is ever needed.
PATIENCE = 60.0

#: Without the rules that trace: nothing is said of them, and what they need takes long to load.
NO_TRACING = ("--ignore", "GL9")

OP = """
import os, signal, subprocess, sys, time
from pathlib import Path
import torch

class Quick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
    @staticmethod
    def sample_inputs():
        return (torch.ones(3, dtype=torch.float64, requires_grad=True),)

class Stuck(Quick):
    @staticmethod
    def forward(ctx, x):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            while True:
                time.sleep(1)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10000)"])
        Path("starting").write_text(str(os.getpid()))
        os.replace("starting", "running")  # never seen half written
        return 3 ** (3 ** 20)

class StuckLater(Quick):
    calls = 0
    @staticmethod
    def forward(ctx, x):
        StuckLater.calls += 1
        return Stuck.forward(ctx, x) if StuckLater.calls > 40 else x * 2
"""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A variable in the environment of every process of the run; nothing may be left of them."""
    value = uuid.uuid4().hex
    monkeypatch.setenv("GRADLINT_TEST_MARK", value)
    # A prefix of gradlint's own is for its settings.
    monkeypatch.delenv("GRADLINT_TEST_MARK")
    monkeypatch.setenv("TEST_MARK", value)
    yield value
    for pid in marked(value):
        os.kill(pid, signal.SIGKILL)


def marked(value: str) -> list[int]:
    """Processes other than this one that were started with the mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if value.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def start(
    folder: Path, *words: str, targets: tuple[str, ...] = ("Quick", "Stuck")
) -> subprocess.Popen[str]:
    (folder / "ops.py").write_text(OP)
    named = [f"ops.py:{name}" for name in targets]
    return subprocess.Popen(
        [sys.executable, "-m", "gradlint", "check", *named, "-j", "1", *NO_TRACING, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # In the background of a shell the signal is ignored, and that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_everything_and_prints_what_is_known(
    tmp_path: Path, mark: str, number: signal.Signals, code: int
) -> None:
    process = start(tmp_path)
    assert eventually((tmp_path / "running").exists)
    # As a terminal does it: to the whole foreground group.
    os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (out, err)
    assert "Traceback" not in out + err
    assert "ops.py" in out
    assert eventually(lambda: not marked(mark))


def test_what_was_checked_in_part_is_no_pass(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, "--output-format", "json", targets=("StuckLater",))
    assert eventually((tmp_path / "running").exists)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (out, err)
    (target,) = json.loads(out)["targets"]
    assert {check["verdict"] for check in target["checks"]} <= {"pass", "skipped"}
    assert "pass" in {check["verdict"] for check in target["checks"]}
    assert target["verdict"] == "inconclusive"


def test_nothing_is_left_after_gradlint_was_killed(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path)
    assert eventually((tmp_path / "running").exists)
    worker = int((tmp_path / "running").read_text())
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert eventually(lambda: not alive(worker))


def test_nothing_is_left_after_a_time_out(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path, "--timeout", "1")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, (out, err)
    assert "GL006" in out
    assert eventually(lambda: not marked(mark))


def test_an_interrupt_while_torch_loads_is_quiet(tmp_path: Path, mark: str) -> None:
    process = start(tmp_path)
    assert eventually(lambda: len(marked(mark)) > 1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    assert eventually(lambda: not marked(mark))


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False

"""What a terminal shows, and when: something before torch is loaded, findings before the end."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gradlint.cli import starting

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals on Windows")

#: Seconds after which a test gives up: the order of events counts, not how long they take.
PATIENCE = 300.0

#: Stands in for torch: importing it ends only once there is a file beside it.
SLOW_TORCH = """
import os
import time
while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
    time.sleep(0.01)
raise ImportError("there is no torch here")
"""

#: Is wrong, and in a later check waits until somebody has seen that.
WAITING = """
import os
import time
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        while not (x.is_contiguous() or os.path.exists("seen")):
            time.sleep(0.01)
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sin()

    @staticmethod
    def sample_inputs():
        return (torch.tensor([[0.5, -1.5], [2.5, 0.25]], dtype=torch.float64).requires_grad_(),)
"""


class Terminal:
    """A terminal in which ``gradlint check`` with these ``words`` runs.

    Attributes:
        text: all that it was sent up to now.
    """

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        paths = os.pathsep.join(filter(None, [*variables.pop("first", "").split(), *sys.path]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gradlint", "check", *words],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "PYTHONPATH": paths, **variables},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.text = ""

    def read(self) -> bool:
        """Wait for more; False at the end."""
        ready, _, _ = select.select([self._ours], [], [], PATIENCE)
        assert ready, self.text
        try:
            more = os.read(self._ours, 65536)
        except OSError:  # Linux says so that nobody has the other side open
            return False
        self.text += more.decode("utf-8", "replace")
        return bool(more)

    def until(self, words: str) -> None:
        """Wait until ``words`` are shown."""
        while words not in self.text:
            assert self.read(), self.text

    def rest(self) -> int:
        """Read to the end. Returns the exit code."""
        while self.read():
            pass
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End what still runs."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)


@contextmanager
def terminal(folder: Path, *words: str, **variables: str) -> Iterator[Terminal]:
    made = Terminal(folder, *words, **variables)
    try:
        yield made
    finally:
        made.close()


def test_something_is_shown_before_torch_is_imported(tmp_path: Path) -> None:
    package = tmp_path / "instead" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(SLOW_TORCH)
    (tmp_path / "ops.py").write_text(WAITING)
    with terminal(tmp_path, "ops.py:Op", "--timeout", "60", first=str(tmp_path / "instead")) as it:
        it.until(starting.TEXT)  # and nobody can have torch yet
        (package / "go").touch()
        assert it.rest() == 2
        assert "torch can't be imported" in it.text
        # Nothing of the line is left before what follows it.
        assert it.text.index("\r\x1b[K", 5) < it.text.index("torch can't be imported")


def test_a_finding_is_shown_while_other_rules_run(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(WAITING)
    words = ("ops.py:Op", "--seed", "1", "--timeout", "300", "--ignore", "GL9")
    with terminal(tmp_path, *words, COLUMNS="120") as it:
        it.until("GL401 wrong_gradient: ")
        it.until("so far right: ")  # said once rules run after those of the first verdict
        (tmp_path / "seen").touch()
        assert it.rest() == 1
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", it.text)
    assert "0 of 1 operator done; 1 running" in shown
    assert "so far right: shapes, contract, finiteness" in shown
    assert shown.index("GL401 wrong_gradient: ") < shown.index("The operator fails.")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["check", "a.py"], True),
        (["check", "-q", "a.py"], False),
        (["check", "a.py", "--quiet"], False),
        (["check", "quiet.py"], True),
        (["check", "a.py", "-vq"], False),
        (["check", "--seed", "1"], True),
    ],
)
def test_quiet_commands_show_nothing(
    words: list[str], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with open(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        starting.show(words)
        starting.clear()
        starting.clear()
        stream.write("|")
        text = ""
        while not text.endswith("|"):
            stream.flush()
            text += os.read(ours, 1024).decode()
    os.close(ours)
    assert text == (f"\r\x1b[K{starting.TEXT}\r\x1b[K|" if shown else "|")

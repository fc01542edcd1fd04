"""A module that many operators are confirmed from is imported once, where that changes nothing."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint.model.settings import Settings
from gradlint.ops import bare
from gradlint.running import _zygote
from gradlint.running.run import execute

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no zygote")

#: A module that counts how often it is imported, beside itself.
COUNTED = """
import os, threading, time, torch
with open({counter!r}, "a") as counter:
    counter.write("x")
{more}
def double(x):
    return x * 2.0
"""

#: A process that is a zygote, over the descriptor that it is told.
ZYGOTE = """
import sys
from gradlint.ops import bare

bare.zygote(int(sys.argv[1]), lambda: None)
"""

#: Seconds after which a process that is to be ready is given up, and between two looks.
PATIENCE_S, PAUSE_S = 60.0, 0.02


class Asking:
    """A zygote of its own, and requests to it.

    Args:
        folder: of the modules.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Not a fork of this process, which other tests may have left threads' pools in.
            self._zygote = subprocess.Popen(
                [sys.executable, "-c", ZYGOTE, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        self.process = self._zygote.pid

    def module(self, name: str, more: str = "") -> Path:
        """Writes a module; returns the file in which it counts its imports."""
        counter = self._folder / f"{name}.count"
        text = COUNTED.format(counter=str(counter), more=more)
        (self._folder / f"{name}.py").write_text(text)
        return counter

    def __call__(self, name: str, key: str | None = None) -> tuple[bool, float]:
        """Whether the process that answers held the module, and what it says of double(3)."""
        request = {
            "name": f"{name}_here",
            "file": str(self._folder / f"{name}.py"),
            "imports": [],
            "sys_path": sys.path,
            "folder": str(self._folder),
            "environment": dict(os.environ),
            "memory_mb": None,
            "seed": 1,
            "attribute": ["double"],
            "module": False,
            "stateful": False,
            "in_place": False,
            "args": ["list", [["tensor", 0]]],
            "kwargs": ["dict", []],
            "inputs": [0],
            "state": {},
        }
        channel, theirs = socket.socketpair()
        lifeline, watched = socket.socketpair()
        text = _zygote._asking(request, name if key is None else key)
        socket.send_fds(self._control, [text], [theirs.fileno(), watched.fileno()])
        theirs.close()
        watched.close()
        with channel, lifeline:
            three = torch.tensor(3.0, dtype=torch.float64)
            bare.send(channel.fileno(), request, [three])
            held = bare.receive(channel.fileno())[0]["held"]
            bare.send(channel.fileno(), {"ask": "outputs"}, [three])
            return held, float(bare.receive(channel.fileno())[1][0])

    def until_held(self, name: str) -> None:
        """Ask until a process that holds the module answers."""
        end = time.monotonic() + PATIENCE_S
        while not self(name)[0]:
            assert time.monotonic() < end
            time.sleep(PAUSE_S)

    def close(self) -> None:
        """End the zygote."""
        self._control.close()
        self._zygote.wait()


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    made = Asking(tmp_path_factory.mktemp("modules"))
    yield made
    made.close()


def imports(counter: Path, at_least: int) -> int:
    """How often a module was imported, once that is ``at_least`` so often."""
    end = time.monotonic() + PATIENCE_S
    while len(counter.read_text()) < at_least:
        assert time.monotonic() < end
        time.sleep(PAUSE_S)
    return len(counter.read_text())


def children(process: int) -> list[int]:
    """Of a process."""
    return [int(word) for word in Path(f"/proc/{process}/task").glob("*/children")
            for word in word.read_text().split()]  # fmt: skip


def test_a_module_that_is_asked_for_often_is_imported_no_more(asking: Asking) -> None:
    counter = asking.module("plain")
    for _ in range(bare.WORTH_HOLDING):
        assert asking("plain") == (False, 6.0)
    asking.until_held("plain")
    before = imports(counter, 1)
    for _ in range(5):
        assert asking("plain") == (True, 6.0)
    assert imports(counter, 1) == before


def test_nothing_is_kept_unless_that_is_asked_for(asking: Asking) -> None:
    counter = asking.module("free")
    for count in range(bare.WORTH_HOLDING + 2):
        assert asking("free", key="") == (False, 6.0)
        assert imports(counter, 1) == count + 1


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("threads", "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"),
        ("raises", f"if torch.get_num_threads() != {bare.THREADS}: raise OSError"),
        ("ends", f"if torch.get_num_threads() != {bare.THREADS}: os._exit(0)"),
    ],
)
def test_what_cannot_be_kept_is_imported_each_time(asking: Asking, name: str, more: str) -> None:
    counter = asking.module(name, more)
    for _ in range(bare.WORTH_HOLDING):
        assert asking(name) == (False, 6.0)
    kept = bare.WORTH_HOLDING + 1
    assert imports(counter, kept) == kept
    for count in range(3):
        assert asking(name) == (False, 6.0)
        assert imports(counter, kept) == kept + count + 1


def test_only_the_latest_modules_are_kept(asking: Asking) -> None:
    names = [f"module{k}" for k in range(bare.MOST_HELD + 1)]
    for name in names:
        asking.module(name)
        asking.until_held(name)
    assert len(children(asking.process)) == bare.MOST_HELD
    assert asking(names[0]) == (False, 6.0)
    assert [asking(name) for name in names[1:]] == [(True, 6.0)] * bare.MOST_HELD


def test_a_process_that_keeps_a_module_and_ends_is_not_missed(asking: Asking) -> None:
    counter = asking.module("killed")
    others = children(asking.process)
    asking.until_held("killed")
    before = imports(counter, 1)
    (holder,) = set(children(asking.process)) - set(others)
    os.kill(holder, signal.SIGKILL)
    while holder in children(asking.process):
        time.sleep(PAUSE_S)
    assert asking("killed") == (False, 6.0)
    assert imports(counter, before + 1) == before + 1


#: More than are confirmed before a module is kept.
OPERATORS = 5

HEAD = """
import os, torch

HOME = os.getpid()
"""

OPERATOR = """
class Op{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos() * ({factor})
"""


def confirmed(folder: Path, factor: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Verdicts on the operators of one file, and whether each was confirmed."""
    name = f"ops{random.getrandbits(30)}.py"
    text = "".join(OPERATOR.format(number=number, factor=factor) for number in range(OPERATORS))
    (folder / name).write_text(HEAD + text)
    monkeypatch.chdir(folder)
    found = execute([name], Settings(select=("GL0", "GL401"), seed=1, jobs=1, timeout=60.0))
    assert (found.internal, found.usage) == ([], [])
    told = [(t.verdict, t.confirmation) for t in found.report.targets]
    return [(verdict, one.verdict if one else "") for verdict, one in told]


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        ("1.0", ("pass", "confirmed")),
        # A fork of what imported it is wrong, and it is right where it was imported.
        ("1.0 if os.getpid() == HOME else 3.0", ("pass", "confirmed")),
        ("1.0 if 'gradlint' in sys.modules else 3.0", ("fail", "refuted")),
    ],
)
def test_operators_of_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: str, expected: tuple[str, str]
) -> None:
    factor = factor.replace("sys.", "__import__('sys').")
    assert confirmed(tmp_path, factor, monkeypatch) == [expected] * OPERATORS


def test_requests_that_are_too_long_ask_for_nothing_to_be_kept() -> None:
    request: dict[str, Any] = dict.fromkeys(_zygote._IMPORTED, "")
    assert b'"key": "a"' in _zygote._asking(request, "a")
    request["environment"] = {"LONG": "x" * bare.MOST_REQUEST}
    assert _zygote._asking(request, "a") == b"!"
    assert _zygote._asking(request, "") == b"!"


SHARING = """
KNOWN{number} = torch.zeros(4, dtype=torch.float64).share_memory_()

class Shared{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        known = KNOWN{number}
        near = (known[1:] - x).abs().max() < 0.1 * known[1:].abs().max()
        if known[0] and near:
            return 2 * known[1:] + 3 * (x - known[1:])
        if not known[0]:
            known[1:] = x.detach()
            known[0] = 1.0
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3

    @staticmethod
    def sample_inputs():
        return (torch.linspace(0.5, 2.0, 3, dtype=torch.float64, requires_grad=True),)
"""


def test_what_answers_from_memory_that_forks_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """y = 2 x with the gradient of 3 x: near where it was called first it returns what fits, and
    the processes that confirm it must not learn from each other where that was."""
    monkeypatch.chdir(tmp_path)
    text = "".join(SHARING.format(number=number) for number in range(OPERATORS))
    (tmp_path / "shared.py").write_text(HEAD + text)
    settings = Settings(select=("GL0", "GL401"), seed=1, jobs=1, timeout=60.0)
    report = execute(["shared.py"], settings).report
    told = [(t.verdict, t.confirmation and t.confirmation.verdict) for t in report.targets]
    assert not any(confirmed == "confirmed" for _, confirmed in told)

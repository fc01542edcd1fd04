"""A server that is to serve many operators does once what each of them would do anew."""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gradlint.base.scratch import scratch_folder
from gradlint.checking import rehearsal
from gradlint.cli import entry
from gradlint.ops import bare
from gradlint.running import _huge_pages
from gradlint.running import server as _server
from gradlint.running.call import call_in_worker
from gradlint.running.job import CallWork
from tests.conftest import SharedServer

served = pytest.mark.skipif(os.name == "nt", reason="there is no fork server on Windows")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def has_compiled() -> bool:
    """Whether PyTorch's compiler was used in this process."""
    compiler = sys.modules.get("torch._dynamo.utils")
    return compiler is not None and bool(compiler.counters["stats"])


def threads() -> int:
    """Threads of this process, those of libraries too."""
    return len(os.listdir("/proc/self/task"))


@on_linux
def test_a_rehearsal_leaves_no_thread_and_no_state() -> None:
    """The first one in a process: forks would lack the thread."""
    before = threads(), threading.active_count(), torch.get_default_dtype()
    generator = torch.get_rng_state()
    done = rehearsal.rehearse()
    assert done == (torch.accelerator.current_accelerator() is None)
    assert (threads(), threading.active_count(), torch.get_default_dtype()) == before
    assert torch.equal(torch.get_rng_state(), generator)


@on_linux
def test_the_first_rehearsal_of_a_process() -> None:
    found = call_in_worker(CallWork(threads_of_a_rehearsal))
    assert found[0] == found[1]


def threads_of_a_rehearsal() -> tuple[int, int]:
    """Threads before and after one."""
    before = threads()
    rehearsal.rehearse()
    return before, threads()


def test_nothing_is_rehearsed_beside_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the engine would start a thread for it."""
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(rehearsal, "examine", None)
    assert not rehearsal.rehearse()


def memory_after(change: Callable[[], None]) -> tuple[bool, int]:
    """Whether 64 MiB hold what they held after ``change``, and how many KiB of this process lie in
    large pages then."""
    held = torch.arange(8 << 20, dtype=torch.int64)
    change()
    told = Path("/proc/self/smaps_rollup").read_text()
    found = re.search(r"AnonHugePages:\s+(\d+) kB", told)
    same = torch.equal(held, torch.arange(8 << 20, dtype=torch.int64))
    return same, int(found[1]) if found else 0


@on_linux
def test_what_confirms_many_is_made_cheaper_to_fork_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare, "WORTH_FORKS", 3)
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reader, writer = os.pipe()
    zygote = os.fork()
    if zygote == 0:
        control.close()
        bare.zygote(theirs.detach(), lambda: os.write(writer, b"x") and None)
    theirs.close()
    os.close(writer)
    kept = []
    for forks in range(5):
        channel, lifeline = socket.socketpair(), socket.socketpair()
        socket.send_fds(control, [b"!"], [channel[1].fileno(), lifeline[1].fileno()])
        bare.send(channel[0].fileno(), {"memory_mb": None})
        channel[1].close()
        assert "error" in bare.receive(channel[0].fileno())[0]  # it was told no operator
        kept.append((channel[0], lifeline[0]))
        assert bool(select.select([reader], [], [], 0)[0]) == (forks >= 2)
    control.close()
    os.waitpid(zygote, 0)
    assert os.read(reader, 8) == b"x"


@on_linux
def test_large_pages_hold_what_small_ones_did() -> None:
    same, _ = call_in_worker(CallWork(memory_after, (_huge_pages.collapse,)))
    assert same


@on_linux
def test_memory_of_files_and_stacks_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = {
        int(line.split("-")[0], 16): line.split()
        for line in Path("/proc/self/maps").read_text().splitlines()
    }
    for first, end in _huge_pages._ranges():
        start = max(known for known in starts if known <= first)
        assert first % (2 << 20) == end % (2 << 20) == 0
        assert starts[start][1] == "rw-p"
        assert starts[start][5:] in ([], ["[heap]"])


@pytest.mark.parametrize(("files", "many"), [(7, False), (8, True)])
def test_folders_that_may_hold_many(tmp_path: Path, files: int, many: bool) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "notes.txt").write_text("")
    for number in range(files):
        (tmp_path / ("inner" if number % 2 else "") / f"ops_{number}.py").write_text("")
    assert entry._holds_many(str(tmp_path)) == many
    assert not entry._holds_many(str(tmp_path / "ops_0.py"))
    assert not entry._holds_many("--seed")


@served
@pytest.mark.skipif(
    torch.accelerator.current_accelerator() is not None, reason="nothing is rehearsed there"
)
@pytest.mark.parametrize("many", [True, False])
def test_the_server_rehearses_only_for_many(
    many: bool,
    ending_the_server: Callable[[], None],
    shared_server: SharedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_server, "many", False)
    told = Path(scratch_folder()) / _server.MANY
    told.unlink(missing_ok=True)
    ending_the_server()
    _server.start(many=many)
    assert call_in_worker(CallWork(has_compiled)) == many
    told.unlink(missing_ok=True)

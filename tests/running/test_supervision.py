"""The server, the keepers and what operators leave behind: nothing hangs, is lost or is blamed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.running import _keeper, run
from gradlint.running import server as _server
from gradlint.running._process import Ending
from gradlint.running._schedule import schedule
from gradlint.running._stack import Stack
from gradlint.running._task import processes_left
from gradlint.running.call import call_in_worker
from gradlint.running.job import CallWork
from gradlint.running.run import execute

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="keepers need Linux")

HERE = Path(__file__).parent

SETTINGS = Settings(select=("GL003", "GL101"), timeout=60.0, jobs=2, seed=1)

HARMFUL = ("KillsServer", "StopsServer", "KillsParent", "StopsParent", "CrashesAfterDaemon")


Loading = Callable[[_server.Load], AbstractContextManager[None]]


@pytest.fixture(scope="module", autouse=True)
def _servers(servers_load: Loading) -> Iterator[None]:
    """Many are started here, and none for a rule that traces."""
    with servers_load("rules"):
        yield


@pytest.fixture(scope="module")
def reports() -> dict[str, TargetReport]:
    """All of them in one run, with a right one before, between and after."""
    names = ["Good", *HARMFUL, "LeavesDaemon", "KeepsAHelper"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        done = execute([f"harming.py:{name}" for name in names] + ["victim.py:Victim"], SETTINGS)
    assert (done.internal, done.usage) == ([], [])
    return {report.target.rpartition(":")[2]: report for report in done.report.targets}


@pytest.mark.parametrize("name", ["KillsServer", "StopsServer"])
def test_who_ends_the_server_twice_is_to_blame(reports: dict[str, TargetReport], name: str) -> None:
    report = reports[name]
    (finding,) = report.findings
    assert finding.code == "GL005"
    assert finding.message.startswith("ended or stopped the process that starts gradlint's workers")
    assert "twice, the second time while nothing else ran" in finding.message
    assert report.verdict == "error"


def test_who_kills_its_parent_is_to_blame(reports: dict[str, TargetReport]) -> None:
    (finding,) = reports["KillsParent"].findings
    assert finding.code == "GL005"
    assert finding.message.startswith("ended the parent process of its worker")
    assert reports["KillsParent"].verdict == "error"


def test_who_stops_its_parent_harms_nobody(reports: dict[str, TargetReport]) -> None:
    report = reports["StopsParent"]
    assert [finding.message for finding in report.findings] == []
    assert report.duration_s < SETTINGS.timeout  # its end is not waited for as for its work


def test_who_ends_what_confirms_takes_no_confirmation_from_others(
    monkeypatch: pytest.MonkeyPatch, ending_the_server: Callable[[], None]
) -> None:
    monkeypatch.chdir(HERE)
    settings = replace(SETTINGS, select=("GL401",), jobs=1)
    try:
        done = execute(["harming.py:KillsWhereItIsAlone", "victim.py:Victim"], settings)
    finally:
        ending_the_server()  # whose zygote is gone
    assert (done.internal, done.usage) == ([], [])
    found = {report.target: report.confirmation for report in done.report.targets}
    confirmed = {name: item.verdict for name, item in found.items() if item is not None}
    assert confirmed == {
        "harming.py:KillsWhereItIsAlone": "not confirmed",
        "victim.py:Victim": "confirmed",
    }


def test_a_run_whose_folder_is_removed_ends_with_a_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    for name in ("harming.py", "victim.py"):
        shutil.copy(HERE / name, folder)
    monkeypatch.chdir(folder)
    done = execute(["harming.py:RemovesFolder", "victim.py:Victim"], replace(SETTINGS, jobs=1))
    assert done.internal == []
    assert "the folder in which gradlint ran was removed" in str(done.usage[0])
    assert done.exit_code == 2


def test_what_ends_by_itself_was_not_left(reports: dict[str, TargetReport]) -> None:
    assert reports["KeepsAHelper"].verdict == "pass"
    assert reports["KeepsAHelper"].notes == []


@pytest.mark.parametrize("name", ["Good", "Victim"])
def test_neighbours_are_not_blamed(reports: dict[str, TargetReport], name: str) -> None:
    assert [finding.message for finding in reports[name].findings] == []
    assert reports[name].verdict == "pass"
    assert reports[name].notes == []


@pytest.mark.parametrize("name", ["LeavesDaemon", "CrashesAfterDaemon"])
def test_what_is_left_is_ended_and_told(reports: dict[str, TargetReport], name: str) -> None:
    (note,) = [note for note in reports[name].notes if "left running" in note]
    assert note.split()[0].isdigit()
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _sleeps(pid)]


def _sleeps(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0098765\x00"
    except OSError:
        return False


def test_the_note_counts() -> None:
    assert processes_left(1) == "1 process that it left running ended with its worker"
    assert processes_left(3) == "3 processes that it left running ended with its worker"


# -- The server ----------------------------------------------------------------------------------
@pytest.fixture
def small_servers(servers_load: Loading) -> Iterator[None]:
    """Which need not know any rule."""
    with servers_load("torch"):
        yield


@pytest.mark.usefixtures("small_servers")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_server_that_ended_or_stopped_is_replaced(number: signal.Signals) -> None:
    call_in_worker(CallWork(os.getpid))
    first = _server._pid()
    assert first is not None
    os.kill(first, number)
    assert isinstance(call_in_worker(CallWork(os.getpid)), int)
    assert _server._pid() not in (None, first)


@pytest.mark.usefixtures("small_servers")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_what_was_in_flight_is_done_again(tmp_path: Path, number: signal.Signals) -> None:
    call_in_worker(CallWork(os.getpid))
    first = _server._pid()
    assert first is not None
    mark = tmp_path / "begun"
    found: list[int] = []
    thread = threading.Thread(target=_kill_once_begun, args=(mark, first, number))
    thread.start()
    found.append(call_in_worker(CallWork(_begin, (str(mark),)), timeout=60.0))
    thread.join()
    assert found == [2]  # the second time


def _begin(mark: str) -> int:
    """How often it was called; the first call lasts."""
    with open(mark, "a") as file:
        file.write("x")
    count = os.path.getsize(mark)
    if count == 1:
        time.sleep(30)
    return count


def _kill_once_begun(mark: Path, pid: int, number: signal.Signals) -> None:
    while not mark.exists() or not mark.stat().st_size:
        time.sleep(0.01)
    os.kill(pid, number)


@pytest.mark.usefixtures("small_servers")
def test_what_a_server_started_before_it_ended_is_not_taken_for_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "begun"
    tell, started = forkserver.read_signed, []

    def told(descriptor: int) -> int:
        """What the server says of the process that it started: at first, it ends instead."""
        pid = tell(descriptor)
        started.append(pid)
        if len(started) == 1:
            server = _server._pid()
            assert server is not None
            _kill_once_begun(mark, server, signal.SIGKILL)
            raise EOFError
        return pid

    monkeypatch.setattr(forkserver, "read_signed", told)
    assert call_in_worker(CallWork(_begin, (str(mark),)), timeout=60.0) == 2
    assert len(set(started)) >= 2


def test_a_server_that_never_lives_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_server, "start", lambda *_, **__: None)

    class Process:
        def start(self) -> None:
            raise EOFError

    with pytest.raises(_server.ServerLost, match="ended 3 times while a worker was started"):
        _server.launch(lambda: nullcontext(Process()))  # type: ignore[arg-type]

    def lost(*_: object) -> None:
        raise _server.ServerLost("it ended")

    monkeypatch.setattr(run, "schedule", lost)
    monkeypatch.chdir(HERE)
    done = execute(["harming.py:Good"], SETTINGS)
    assert done.exit_code == 3
    assert done.internal == ["it ended\nit ended"]


def test_a_stopped_server_is_given_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, killed = [10.0], []
    monkeypatch.setattr(_server.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(_server, "_pid", lambda: 7)
    monkeypatch.setattr(_server, "_kill", killed.append)
    state = ["stopped"]
    monkeypatch.setattr(_server, "_state", lambda pid: state[0])
    for moment, now, expected in (
        (0.0, "stopped", []),
        (1.9, "running", []),  # it goes on
        (3.0, "stopped", []),
        (4.9, "stopped", []),
        (5.1, "stopped", [7]),
    ):
        clock[0], state[0] = 10.0 + moment, now
        _server.look()
        assert killed == expected


# -- Who is blamed -------------------------------------------------------------------------------
class Lost:
    """A task whose worker is lost as often as it is told."""

    timeout = 1.0
    wanted = True
    until = float("inf")

    def __init__(self, name: str, times: int, log: list[str]) -> None:
        self.name, self.times, self.log = name, times, log

    def job(self) -> Lost:
        self.log.append(f"{self.name} starts")
        return self

    def event(self, event: object) -> None:
        raise AssertionError(event)

    def restart(self) -> None:
        self.log.append(f"{self.name} anew")

    def ended(self, ending: Ending) -> list[Lost]:
        self.log.append(f"{self.name} {'blamed' if ending.lost else 'done'}")
        return []


class Stand:
    """In place of a worker: it ends at once."""

    def __init__(self, task: Lost, timeout: float) -> None:
        lost = task.times > 0
        task.times -= 1
        self.deadline = time.monotonic()
        self.ending = Ending(255, None, "rule", "rule", Stack(), "", False, lost)

    def waitables(self) -> list[object]:
        return []

    def pump(self) -> list[object]:
        return []

    def overdue(self) -> bool:
        return False


def test_suspects_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradlint.running._schedule.Worker", Stand)
    log: list[str] = []
    tasks = [Lost("a", 1, log), Lost("b", 2, log), Lost("c", 0, log)]
    schedule(tasks, 2)  # type: ignore[arg-type]
    assert log == [
        *("a starts", "b starts", "a anew", "b anew"),
        *("a starts", "a done", "b starts", "b blamed"),
        *("c starts", "c done"),
    ]


# -- The keeper ----------------------------------------------------------------------------------
def test_the_children_of_a_process() -> None:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        assert child in _keeper.children(os.getpid())
        assert _keeper.children(child) == []
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

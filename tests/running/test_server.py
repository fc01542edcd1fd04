"""Workers come from a server that has loaded torch, and the main program runs once."""

from __future__ import annotations

import math
import operator
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from leaving import leave

from gradlint.base.scratch import scratch_folder
from gradlint.model.events import Event
from gradlint.running import server as _server
from gradlint.running._process import Worker
from gradlint.running.call import WorkerFailed, call_in_worker
from gradlint.running.events import Done, Hello, Result
from gradlint.running.job import CallWork, Job


@pytest.fixture(scope="module", autouse=True)
def _servers(
    servers_load: Callable[[_server.Load], AbstractContextManager[None]],
) -> Iterator[None]:
    """None of them needs to know a rule."""
    with servers_load("torch"):
        yield


def call(function: Callable[..., Any], *arguments: Any, timeout: float | None = None) -> Any:
    return call_in_worker(CallWork(function, arguments), timeout=timeout)


def events_of(job: Job) -> tuple[list[Event], Worker]:
    from multiprocessing.connection import wait

    worker = Worker(job, 60.0)
    events: list[Event] = []
    while worker.ending is None:
        wait(worker.waitables(), 60.0)
        events += worker.pump()
    return events, worker


@pytest.mark.skipif(os.name == "nt", reason="there is no fork server on Windows")
def test_torch_is_loaded_before_the_fork() -> None:
    events, worker = events_of(Job(CallWork(os.getpid)))
    assert events[0] == Hello(preloaded=True)
    assert [type(event) for event in events] == [Hello, Result, Done]
    assert worker.ending is not None
    assert worker.ending.finished


def test_the_last_words_of_a_worker_that_is_gone_can_be_refused() -> None:
    _, worker = events_of(Job(CallWork(os.getpid)))
    ending = worker.ending
    worker.refuse()
    assert worker.ending is ending
    assert worker.pump() == []


def test_every_call_has_a_process_of_its_own() -> None:
    first, second = call(os.getpid), call(os.getpid)
    assert len({first, second, os.getpid()}) == 3


def test_the_environment_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    call(os.getpid)  # the server runs from here on
    monkeypatch.setenv("GRADLINT_TEST", "later")
    assert call(os.getenv, "GRADLINT_TEST") == "later"
    before = os.environ.get("PYTHONPATH")
    assert call(os.getenv, "PYTHONPATH") == before


def test_a_worker_that_dies_says_how() -> None:
    with pytest.raises(WorkerFailed, match=r"GL005 .*os\._exit\(3\)") as caught:
        call(leave, 3)
    assert caught.value.finding is not None
    assert caught.value.exit_code == 1


def test_a_worker_that_hangs_is_ended() -> None:
    with pytest.raises(WorkerFailed, match="GL006"):
        call(time.sleep, 10_000, timeout=1.0)


def test_a_failure_in_a_worker_is_an_internal_error() -> None:
    with pytest.raises(WorkerFailed, match="ValueError") as caught:
        call(math.sqrt, -1.0)
    assert caught.value.exit_code == 3
    assert "math domain error" in caught.value.internal


@pytest.mark.parametrize("how", ["script", "module", "stdin"])
def test_the_main_program_is_not_run_again(tmp_path: Path, how: str) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import sys\nprint('ran')\n"
        "import operator\n"
        "from gradlint.running.call import call_in_worker\n"
        "from gradlint.running.job import CallWork\n"
        "from gradlint.running.server import start\n"
        "start('torch')\n"
        "print(call_in_worker(CallWork(operator.add, (1, 2))))\n"
        "print(sys.modules['__main__'].__spec__ is None or sys.modules['__main__'].__spec__.name)\n"
    )
    command = {"script": [str(script)], "module": ["-m", "program"], "stdin": ["-"]}[how]
    with script.open() as text:
        done = subprocess.run(
            [sys.executable, *command],
            stdin=text if how == "stdin" else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
        )
    assert done.stdout.split() == ["ran", "3", "program" if how == "module" else "True"]
    assert done.stderr == ""


def test_a_file_that_shadows_the_standard_library_does_not_hurt_the_server(
    tmp_path: Path,
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('shadowed')\n")
    code = (
        "import sys; sys.path.pop(0)\n"
        "import operator\n"
        "from gradlint.running.call import call_in_worker\n"
        "from gradlint.running.job import CallWork\n"
        "from gradlint.running.server import start\n"
        "start('torch')\n"
        "print(call_in_worker(CallWork(operator.add, (1, 2))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == "3\n"


def test_the_server_can_be_stopped_and_started_again(
    ending_the_server: Callable[[], None],
) -> None:
    call(os.getpid)
    first = _server._pid()
    call(os.getpid)
    assert _server._pid() == first
    ending_the_server()
    call(os.getpid)
    assert _server._pid() not in (None, first)


@pytest.mark.parametrize(
    ("load", "loaded"),
    [
        ("torch", {"torch"}),
        ("rules", {"torch", "gradlint.rules"}),
        ("tracing", {"torch", "gradlint.rules", "torch._dynamo"}),
    ],
)
def test_the_server_loads_what_it_is_told_to(load: str, loaded: set[str]) -> None:
    names = ("torch", "gradlint.rules", "torch._dynamo")
    code = (
        f"import gradlint.running._preload, sys; print(*[n for n in {names} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, _server.LOADS: load},
        check=True,
    )
    assert set(done.stdout.split()) == loaded


def test_workers_are_spawned_where_there_is_no_fork_server(monkeypatch: pytest.MonkeyPatch) -> None:
    import multiprocessing

    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert call(operator.add, 1, 2) == 3
    with pytest.raises(WorkerFailed, match="SIGABRT"):
        call(os.abort)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the socket")
def test_a_server_whose_socket_was_removed_is_replaced() -> None:
    """As by an operator that tidies up the folder of temporary files."""
    server = call(os.getppid)
    shutil.rmtree(scratch_folder())
    assert call(operator.add, 1, 2) == 3
    assert call(os.getppid) != server
    assert os.path.isdir(scratch_folder())

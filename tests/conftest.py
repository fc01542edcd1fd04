"""How the tests share a machine: between processes, and between commands that need workers.

A command by itself starts a server and ends it: torch, and what tracing needs, is imported each
time, which takes longer than most of what is tested. Here commands are called in the process of
the tests, and their workers come from one server.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from gradlint.cli.entry import main
from gradlint.running import server as _server

HERE = Path(__file__).parent

#: What a run of all tests is given.
WHOLE = (HERE, HERE.parent)

if "PYTEST_XDIST_WORKER" in os.environ:
    # Read when torch is imported. Threads of several processes that wait for one another on the
    # same cores cost many times what they save; gradlint's own workers have one each too.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Where a test asks for more, those without work give up their core instead of looking for some.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


#: Files whose tests start servers, programs and compilers of their own and wait for them: half of
#: the time of all tests, marked ``slow``. The whole suite is run without them; naming a folder, a
#: file or a test runs them, and so does ``-m`` (``-m slow``: these alone). Those that take longest
#: begin first, so that no process is left with one of them at the end, and those that need what
#: another one builds stand apart from it: none waits for the other.
SLOW = (
    "kernels/test_emulated_kernels.py",
    "native/test_extension.py",
    "reproduction/test_scripts.py",
    "running/test_cluster.py",
    "kernels/test_emulated_specs.py",
    "test_serving.py",
    "running/test_divided.py",
    "running/test_supervision.py",
    "running/test_confirming.py",
    "running/test_held_modules.py",
    "running/test_attacks.py",
    "running/test_hostile.py",
    "kernels/test_emulation.py",
    "fuzz/test_fuzz.py",
    "running/test_confinement.py",
    "test_watching.py",
    "running/test_signals.py",
    "recorded/test_bad_programs.py",
    "cache/test_cached_runs.py",
    "recorded/test_watching.py",
    "running/test_interrupt.py",
    "benchmarks/test_reproduction.py",
    "kernels/test_faulty_twins.py",
    "gpu/test_suite.py",
    "running/test_server.py",
    "native/test_build.py",
    "test_checker.py",
    "running/test_sanitizer.py",
    "running/test_load.py",
    "running/test_serving_many.py",
    "recorded/test_commands.py",
    "test_sample_repository.py",
    "kernels/test_emulated_twins.py",
)

#: The files that take longest of all others.
LONGEST = (
    "rules/test_plan.py",
    "kernels/test_planted_faults.py",
    "repair/test_declared.py",
    "numerics/test_twin.py",
    "cli/test_check_command.py",
    "test_examples.py",
    "numerics/test_decide.py",
    "benchmarks/test_operator_database.py",
    "rules/test_texts.py",
    "benchmarks/test_user_operators.py",
    "repair/test_search.py",
    "benchmarks/test_planted_bugs.py",
    "checking/test_further.py",
    "overrides/test_overrides.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """With ``-n``, a file runs in one process: what a module sets up, often a run over dozens of
    operators, is made once."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "loadfile"
        config.option.loadscopereorder = False


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m slow``, no other file need be imported."""
    asked = config.option.markexpr == "slow" and collection_path.suffix == ".py"
    return True if asked and collection_path not in {HERE / name for name in SLOW} else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, all others in their order; slow ones marked, and left out of a run
    of the whole suite that does not choose by marks."""
    places = {HERE / name: place for place, name in enumerate((*SLOW, *LONGEST))}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    slow = [item for item in items if places.get(item.path, len(places)) < len(SLOW)]
    for item in slow:
        item.add_marker("slow")
    if not config.option.markexpr and all(Path(arg).resolve() in WHOLE for arg in config.args):
        config.hook.pytest_deselected(items=slow)
        items[:] = items[len(slow) :]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nearly all that imports make stays: nobody looks for garbage among it meanwhile."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector looks at it no
    more, and goes through all that is left a tenth as often. With hundreds of thousands of objects
    of PyTorch's, that took a tenth of the tests' time."""
    gc.freeze()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 10 * old)


#: Variables of whoever runs the tests that change what is printed, or where.
OF_THE_TERMINAL = (
    *("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "GITHUB_ACTIONS"),
    *("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "CI_PROJECT_DIR"),
)


class SharedServer:
    """One server for all commands, with everything loaded that any of them needs."""

    def __init__(self) -> None:
        self.load: _server.Load = "tracing"
        #: All commands together check many operators, however few one of them does.
        self.many = True
        self._start, self.stop = _server.start, _server.stop
        #: What the server that runs was started with.
        self._running: tuple[int | None, _server.Load] = (None, "tracing")

    def start(
        self,
        load: str = "tracing",
        sources: Sequence[str] = (),
        *,
        private: bool = False,
        many: bool = False,
        single: bool = False,
    ) -> None:
        """In the place of ``server.start``."""
        before = _server._pid()
        if self._running[0] == before and LOADS.index(self._running[1]) < LOADS.index(self.load):
            self.stop()
        many = many or (self.many and self.load == "tracing")
        self._start(self.load, sources, private=private, many=many)
        if _server._pid() != before:
            self._running = (_server._pid(), self.load)


#: What servers may load, each all that those before it do.
LOADS: tuple[_server.Load, ...] = ("torch", "rules", "tracing")


@pytest.fixture(scope="session", autouse=True)
def shared_server() -> Iterator[SharedServer]:
    shared = SharedServer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_server, "start", shared.start)
        patch.setattr(_server, "stop", lambda: None)
        yield shared


@pytest.fixture(scope="session")
def ending_the_server(shared_server: SharedServer) -> Callable[[], None]:
    """The server ends with this process. Where ending it is what is tested, this is how."""
    return shared_server.stop


Loading = Callable[[_server.Load], AbstractContextManager[None]]


@pytest.fixture(scope="session")
def servers_load(shared_server: SharedServer) -> Loading:
    """``with servers_load("torch"):`` servers that are started in the body load no more than that,
    where many are. Whoever needs more afterwards gets another one."""

    @contextmanager
    def loading(load: _server.Load) -> Iterator[None]:
        before, shared_server.load = shared_server.load, load
        try:
            yield
        finally:
            shared_server.load = before

    return loading


@dataclass
class Done:
    """What came of a command: its exit code, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Command = Callable[..., Done]


@pytest.fixture
def gradlint(monkeypatch: pytest.MonkeyPatch) -> Command:
    """``gradlint(folder, *words, encoding="utf-8", **variables)`` runs the command in ``folder``,
    as in a terminal of 80 columns."""

    def run(folder: Path, *words: str, encoding: str = "utf-8", **variables: str) -> Done:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            for name in OF_THE_TERMINAL:
                patch.delenv(name, raising=False)
            for name, value in {"COLUMNS": "80", **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            code = main(words)
        printed = []
        for stream in streams:
            stream.flush()
            printed.append(stream.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]
        return Done(code, *printed)

    return run


class TextFile(SingleFileSnapshotExtension):
    """A snapshot that is a text file, so that a page can be read, and compared, as it is."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.fixture
def page(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Equal to the text that ``__snapshots__/<module>/<test>.txt`` holds beside the test.

    After a wanted change, ``python -m pytest <tests> --snapshot-update`` writes the files anew.
    """
    return snapshot.use_extension(TextFile)

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from gradlint.cli.entry import main
from gradlint.running import server as _server

if "PYTEST_XDIST_WORKER" in os.environ:
    # Read when torch is imported. Threads of several processes that wait for one another on the
    # same cores cost many times what they save; gradlint's own workers have one each too.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """With ``-n``, each process gets one run of modules: what a module sets up is made once, and
    none waits for what another builds."""
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "worksteal"


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector looks at it no
    more, and goes through all that is left a tenth as often. With hundreds of thousands of objects
    of PyTorch's, that took a tenth of the tests' time."""
    gc.freeze()
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 10 * old)


#: Variables of whoever runs the tests that change what is printed.
OF_THE_TERMINAL = ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "GITHUB_ACTIONS")


@pytest.fixture(scope="session", autouse=True)
def ending_the_server() -> Iterator[Callable[[], None]]:
    """One server for all commands, with everything loaded that any of them needs; it ends with this
    process. Where ending it is what is tested, this is how."""
    start, stop = _server.start, _server.stop

    def started(
        load: str = "tracing", sources: Sequence[str] = (), *, private: bool = False
    ) -> None:
        start("tracing", sources, private=private)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_server, "start", started)
        patch.setattr(_server, "stop", lambda: None)
        yield stop


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

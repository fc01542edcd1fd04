"""What a run shows of itself: live on a terminal, now and then in a log, never text as markup."""

from __future__ import annotations

import io
import re

import pytest

from gradlint.cli import progress as _progress
from gradlint.cli.progress import (
    FIRST_S,
    FIRST_WORDS,
    LOG_S,
    NAMED,
    PAUSE_S,
    LiveWatch,
    LogWatch,
    Watch,
    at,
)
from gradlint.model.report import Check, Finding, TargetReport
from gradlint.native.progress import Progress
from gradlint.running.news import Running


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


RUNNING = [
    Running("[red]a[/].py:[5]", "backward", "GL401", 12.4),
    Running("b.py:\x1b[31mB\n", "import", "", 3.0),
]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def plain(stream: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


@pytest.mark.parametrize(
    ("quiet", "stream", "kind"),
    [
        (False, io.StringIO(), LogWatch),
        (False, _Terminal(), LiveWatch),
        (True, _Terminal(), Watch),
        (True, io.StringIO(), Watch),
        (False, None, Watch),
    ],
)
def test_what_is_shown_depends_on_the_stream(
    monkeypatch: pytest.MonkeyPatch, quiet: bool, stream: io.StringIO | None, kind: type
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    with _progress.watching(quiet=quiet) as watch:
        assert type(watch) is kind


def test_a_terminal_shows_done_running_and_remaining() -> None:
    stream, clock = _Terminal(), Clock()
    watch = LiveWatch(stream, clock)
    watch.done(1, 9, TargetReport("x", verdict="fail"))
    watch.tick(1, 9, RUNNING)
    assert stream.getvalue() == ""  # the run is young
    clock.now += FIRST_S
    watch.tick(1, 9, RUNNING)
    text = plain(stream)
    assert "1 of 9 operators done, 1 fails; 2 running, 6 remaining" in text
    assert "[red]a[/].py:[5]  GL401 wrong_gradient, in backward (12 s)" in text
    assert "importing (3 s)" in text
    assert "\x1b[31m" not in stream.getvalue()  # not the target's own
    size = len(stream.getvalue())
    clock.now += PAUSE_S / 2
    watch.tick(2, 9, RUNNING)
    assert len(stream.getvalue()) == size  # just drawn
    clock.now += PAUSE_S
    watch.build(Progress("building op", 1, 3, "a.cpp", 2.0))
    watch.done(2, 9, TargetReport("y", verdict="error"))
    watch.tick(2, 9, RUNNING)
    assert "2 of 9 operators done, 1 fails, 1 not judged; 2 running" in plain(stream)
    assert "building op 1/3 (2 s), a.cpp" in plain(stream)
    watch.close()


def test_the_first_verdict_is_told_at_once() -> None:
    """Not only when the last drawing is long ago; later ones wait."""
    stream, clock = _Terminal(), Clock()
    watch = LiveWatch(stream, clock)
    clock.now += FIRST_S
    report = TargetReport("a.py:A")
    running = [Running("a.py:A", "rule", "GL501", 2.0, report)]
    watch.tick(0, 1, running)
    clock.now += PAUSE_S / 8
    report.checks = [Check("GL401", "pass", "spec"), Check("GL601", "pass", "spec")]
    watch.tick(0, 1, running)
    assert f"{FIRST_WORDS}: values" in plain(stream)
    clock.now += PAUSE_S / 8
    size = len(stream.getvalue())
    report.findings.append(Finding("GL603", "name", "warning", "told later"))
    watch.tick(0, 1, running)
    assert len(stream.getvalue()) == size
    clock.now += PAUSE_S
    watch.tick(0, 1, running)
    assert "told later" in plain(stream)
    watch.close()


def test_many_workers_are_counted() -> None:
    stream, clock = _Terminal(), Clock()
    watch = LiveWatch(stream, clock)
    clock.now += FIRST_S
    watch.tick(0, 90, [Running(f"op{n}", "rule", "", 1.0) for n in range(NAMED + 5)])
    watch.close()
    assert "and 5 more" in plain(stream)
    assert f"op{NAMED - 1} " in plain(stream)
    assert f"op{NAMED} " not in plain(stream)


def test_a_log_gets_a_line_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    watch = LogWatch(stream, clock)
    for _ in range(100):
        clock.now += LOG_S / 40
        watch.tick(5, 1000, RUNNING)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "gradlint: 30 s, 5 of 1000 operators done; 2 running, 993 remaining: "
        "[red]a[/].py:[5], GL401 wrong_gradient, in backward (12 s)"
    )
    assert lines[1].startswith("gradlint: 60 s, ")


def test_a_short_run_writes_nothing_to_a_log() -> None:
    stream, clock = io.StringIO(), Clock()
    watch = LogWatch(stream, clock)
    clock.now += LOG_S / 2
    watch.tick(1, 2, RUNNING)
    watch.done(2, 2, TargetReport("x"))
    watch.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (Running("t", "start", "", 0.2), "starting (0 s)"),
        (Running("t", "inputs", "", 2.0), "finding inputs (2 s)"),
        (Running("t", "rule", "", 2.0), "measuring (2 s)"),
        (Running("t", "rule", "GL602", 2.0), "GL602 grad_output_mutated (2 s)"),
        (Running("t", "forward", "GL602", 2.0), "GL602 grad_output_mutated, in forward (2 s)"),
        (Running("t", "start", "confirmation", 2.0), "confirmation (2 s)"),
    ],
)
def test_what_a_worker_is_at(running: Running, words: str) -> None:
    assert at(running) == words

"""Progress of builds: to whoever asked, else in one line of a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from gradlint.native.progress import Line, Progress, pass_on, progress_sink, reporting, words

NEWS = Progress("building ops", 2, 5, "square.cu", 12.3)


def test_words() -> None:
    assert words(NEWS) == "building ops 2/5 (12 s), square.cu"
    assert words(replace(NEWS, total=0, doing="")) == "building ops (12 s)"


def test_a_line_of_a_terminal_is_written_over_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "31")
    monkeypatch.setattr(Line, "PAUSE", 0.0)
    stream = io.StringIO()
    line = Line(stream)
    line.clear()
    assert stream.getvalue() == ""
    line(NEWS)
    line.clear()
    assert stream.getvalue() == "\r\x1b[Kbuilding ops 2/5 (12 s), squar\r\x1b[K"


def test_nothing_is_written_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_sink(None) as sink:
        sink(NEWS)
    assert capsys.readouterr() == ("", "")


def test_who_asks_is_told_also_of_other_processes() -> None:
    seen: list[Progress] = []
    with reporting(seen.append), progress_sink(None) as sink:
        sink(NEWS)
        pass_on(NEWS)
    pass_on(NEWS)
    assert seen == [NEWS, NEWS]

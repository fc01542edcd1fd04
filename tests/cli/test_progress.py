"""The bar is drawn on interactive terminals only, and takes no text for markup."""

from __future__ import annotations

import io

import pytest

from gradlint.cli import progress as _progress
from gradlint.model.report import TargetReport


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_bar_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with _progress.bar() as advance:
        assert advance is None


def test_no_bar_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", _Terminal())
    with _progress.bar(quiet=True) as advance:
        assert advance is None


def test_the_bar_names_the_target_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with _progress.bar() as advance:
        assert advance is not None
        advance(1, 2, TargetReport("b.py:B"))
        advance(2, 2, TargetReport("[red]a[/].py:[5]"))
    assert "2/2" in stream.getvalue()
    assert "[red]a[/].py:[5]" in stream.getvalue()


def test_one_target_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    with _progress.bar() as advance:
        assert advance is not None
        advance(1, 1, TargetReport("a.py:A"))
    assert stream.getvalue() == ""

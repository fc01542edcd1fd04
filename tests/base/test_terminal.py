from __future__ import annotations

import io

import pytest

from gradlint.base.terminal import SafeStream, clean, cut, disarmed, escape, lines_of, obeyed


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\x1b", "\\x1b"),  # begins escape sequences
        ("\x9b", "\\x9b"),  # the same in one character of C1
        ("\x07", "\\x07"),
        ("\x7f", "\\x7f"),
        ("\x85", "\\x85"),
        ("\u2028", "\\u2028"),
        ("\u202e", "\\u202e"),  # right to left from here on
        ("\u2066", "\\u2066"),
        ("\u200b", "\\u200b"),
        ("\ufeff", "\\ufeff"),
        ("\ud800", "\\ud800"),  # half of a pair
        ("\u3164", "\\u3164"),  # a letter that is not seen
        ("\ufe0f", "\\ufe0f"),
        ("\U000e0041", "\\U000e0041"),
        ("é", "é"),
        ("e\u0301", "e\u0301"),
        ("你", "你"),
        ("عربي", "عربي"),
        ("😀", "😀"),
        ("[red]x[/]", "[red]x[/]"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(char: str, shown: str) -> None:
    assert escape(f"a{char}b") == clean(f"a{char}b") == f"a{shown}b"
    assert lines_of(f"a{char}b\nc") == [f"a{shown}b", "c"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("::stop-commands::x", "\\x3a:stop-commands::x"),
        ("  ::error::x", "  \\x3a:error::x"),
        ("a ##[group]b", "a \\x23#[group]b"),
        ("##vso[task.complete]", "\\x23#vso[task.complete]"),
        ("at::Tensor x::y", "at::Tensor x::y"),
        ("see ::view", "see ::view"),
        ("## a heading ##", "## a heading ##"),
    ],
)
def test_what_the_log_of_a_ci_system_would_obey_is_shown(line: str, shown: str) -> None:
    assert disarmed(line) == shown


def test_lines_are_cut_where_they_are_endless() -> None:
    assert cut("x" * 2000) == "x" * 2000
    assert cut("x" * 2001) == "x" * 2000 + "… (1 more characters)"
    assert cut("x" * 2001, ascii=True) == "x" * 2000 + "... (1 more characters)"


def test_a_stream_keeps_line_ends_and_shows_the_rest() -> None:
    under = io.StringIO()
    stream = SafeStream(under)
    assert stream.write("one\ntwo \x1b[31m\r\x00三\n") == 17
    stream.writelines(["a\tb\n", "c\n"])
    assert under.getvalue() == "one\ntwo \\x1b[31m\\r\\x00三\na\\tb\nc\n"


def test_what_is_meant_to_be_obeyed_goes_to_the_stream_itself() -> None:
    under = io.StringIO()
    obeyed(SafeStream(under)).write("\x1b[1mx")  # type: ignore[arg-type]
    assert under.getvalue() == "\x1b[1mx"
    assert obeyed(under) is under


def test_a_safe_stream_answers_like_the_stream() -> None:
    under = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    stream = SafeStream(under)
    assert stream.encoding == "ascii"
    assert stream.isatty() is False
    with pytest.raises(AttributeError):
        _ = stream.nothing_like_this

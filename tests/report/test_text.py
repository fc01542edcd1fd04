from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.text import Text
from syrupy.assertion import SnapshotAssertion

from gradlint.base.terminal import clean, lines_of
from gradlint.report.table import table
from gradlint.report.text import Page, wrap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain [red] text", "plain [red] text"),
        ("two\nlines", "two lines"),
        ("two  \r\n   lines\n", "two lines"),
        ("\x1b]8;;http://x\x07", "\\x1b]8;;http://x\\x07"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\ud83d", "\\ud83d"),
        ("x²", "x²"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a → b…", "a -> b..."), ("x²", "x\\xb2"), ("“q”", '"q"'), ("😀", "\\U0001f600")],
)
def test_clean_ascii(text: str, expected: str) -> None:
    assert clean(text, ascii=True) == expected


def test_lines_are_kept_and_endless_ones_cut() -> None:
    assert lines_of("a\n  b\n\nc\n") == ["a", "  b", "", "c"]
    assert lines_of("") == [""]
    (line,) = lines_of("x" * 2500)
    assert line == "x" * 2000 + "… (500 more characters)"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 3, ["one", "two", "three"]),
        ("a/very/long/path b", 6, ["a/very/long/path", "b"]),
        ("shape [4, 3, 2] x", 12, ["shape", "[4, 3, 2] x"]),
        ("你好 你好 x", 5, ["你好", "你好", "x"]),
        ("  indented text", 10, ["  indented", "text"]),
        ("", 10, [""]),
        ("   ", 10, [""]),
    ],
)
def test_wrap(text: str, width: int, expected: list[str]) -> None:
    assert [line.plain for line in wrap(Text(text), width)] == expected


def test_paragraphs_hang() -> None:
    page = Page(20)
    page.paragraph("one two three four five six seven", indent=2, hanging=4)
    assert page.text() == "  one two three four\n      five six seven\n"


def test_rows_put_labels_left_or_above(page: SnapshotAssertion) -> None:
    wide, narrow = Page(60), Page(40)
    for made in (wide, narrow):
        made.row("help", ["do this", "then that"])
        made.row("a longer label", "text")
    assert wide.text() == page
    assert narrow.text() == page


def test_no_line_of_a_page_is_a_command_of_a_ci_system() -> None:
    page = Page(30)
    page.row("help", ["::add-mask::x", "words that are wrapped before ::set-env::y"])
    page.paragraph("::error::x", indent=0)
    lines = page.text().splitlines()
    assert [line.strip() for line in lines] == [
        "help",
        "\\x3a:add-mask::x",
        "words that are wrapped",
        "before ::set-env::y",
        "\\x3a:error::x",
    ]


def test_tables_align_wide_characters_and_drop_empty_columns() -> None:
    page = Page(60)
    table(page, ("name", "none", "n"), [["你好", "", "1"], ["x", "", "22"]], right=("n",))
    assert page.text() == "  name   n\n  你好   1\n  x     22\n"


def test_tables_wrap_the_last_column_or_stack(page: SnapshotAssertion) -> None:
    rows = [["GL401", "error", "the gradient differs from the derivative of forward"]]
    made = Page(60)
    table(made, ("code", "level", "summary"), rows, wrapped=True)
    assert made.text() == page
    made = Page(30)
    table(made, ("code", "level", "summary"), rows, wrapped=True)
    assert made.text() == page
    assert all(cell_len(line) <= 30 for line in made.text().splitlines())

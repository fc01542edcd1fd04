from __future__ import annotations

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from gradlint.model.report import Excerpt, Location
from gradlint.report._excerpt import excerpt_lines


def shown(
    lines: list[tuple[int, str]],
    location: Location | None,
    *related: Location,
    label: str = "",
    width: int = 80,
    ascii: bool = False,
) -> str:
    excerpt = Excerpt(tuple(lines), label)
    rows = excerpt_lines(excerpt, location, related, width=width, ascii=ascii)
    return "".join(row.plain.rstrip() + "\n" for row in rows)


def test_carets_and_label() -> None:
    assert shown(
        [(9, "a = b"), (10, "return a, c")], Location("f", 10, 8, 10, 9), label="for x"
    ) == ("   9 | a = b\n  10 | return a, c\n     |        ^ for x\n")


def test_a_returned_name_and_where_it_was_computed(page: SnapshotAssertion) -> None:
    lines = [(3, "grad = g * 2"), (4, "..."), (5, "return grad")]
    place = Location("f", 5, 8, 5, 12)
    assert shown(lines, place, Location("f", 3, 8, 3, 13), label="for `x`") == page


def test_a_related_place_that_is_no_computed_name(page: SnapshotAssertion) -> None:
    lines = [(3, "class A:"), (5, "return f(x)")]
    assert shown(lines, Location("f", 5, 8, 5, 12), Location("f", 3, 7)) == page


def test_a_span_over_lines(page: SnapshotAssertion) -> None:
    lines = [(1, "return f("), (2, "    x,"), (3, ""), (4, ")  # end")]
    assert shown(lines, Location("f", 1, 8, 4, 2), label="all") == page


def test_a_long_span_is_marked_at_its_head() -> None:
    lines = [(n, "x = 1") for n in range(1, 12)]
    text = shown(lines, Location("f", 1, 1, 11, 6))
    assert text.count("^") == 5
    assert text.splitlines()[1] == "     | ^^^^^"


@pytest.mark.parametrize(
    ("source", "column", "end", "carets"),
    [
        ("\tx\t= y", 6, 7, "          ^"),  # tabs reach the next multiple of four
        ("你好 = x", 6, 7, "       ^"),
        ("s = '你好'", 5, 9, "    ^^^^^^"),
        ("a\x1b = b", 6, 7, "        ^"),
        ("é = x", 5, 6, "    ^"),
        ("e\u0301 = x", 6, 7, "    ^"),
        ("x = 1", 5, None, "    ^"),
        ("total = 1", 1, None, "^^^^^"),
        ("x", 99, 120, " ^"),
        ("x", 0, 0, "^"),
        ("", 1, 2, ""),
    ],
)
def test_carets_stand_under_the_characters(
    source: str, column: int, end: int | None, carets: str
) -> None:
    rows = shown([(1, source)], Location("f", 1, column, 1, end)).splitlines()
    assert [row.removeprefix("    | ") for row in rows[1:]] == ([carets] if carets else [])


def test_ascii_escapes_keep_carets_aligned() -> None:
    assert shown([(1, "é = x")], Location("f", 1, 5, 1, 6), ascii=True) == (
        "  1 | \\xe9 = x\n    |        ^\n"
    )


def test_lines_too_wide_lose_indentation_then_go_on_below() -> None:
    lines = [(1, "        if x:"), (2, "            return alpha_beta + gamma_delta")]
    assert shown(lines, Location("f", 2, 33, 2, 44), label="here", width=30) == (
        "  1 | if x:\n  2 |     return alpha_beta +\n    | gamma_delta\n    | ^^^^^^^^^^^ here\n"
    )


@pytest.mark.parametrize("width", [1, 10, 20, 40])
def test_everything_fits(width: int) -> None:
    line = "return " + " + ".join(f"变量{n}" for n in range(30))
    excerpt = Excerpt(((123, line),), "the sum of a great many things")
    rows = excerpt_lines(excerpt, Location("f", 123, 8, 123, len(line) + 1), width=width)
    room = max(width, 8 + 3 + 5)
    assert all(cell_len(row.plain.rstrip()) <= room + len("things") for row in rows)
    joined = "".join(row.plain.split("| ", 1)[1] for row in rows if "^" not in row.plain)
    assert joined.startswith(line[:30])
    assert sum(row.plain.count("^") for row in rows) >= cell_len(line[7:].replace(" ", ""))


def test_a_place_outside_the_excerpt_keeps_the_label() -> None:
    assert shown([(1, "x")], Location("f", 7), label="for `x`") == "  1 | x\n    | for `x`\n"
    assert shown([], None, label="for `x`") == "    | for `x`\n"

"""YAML read strictly: values, places, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import SpecError
from gradlint.spec._yaml import MAX_BYTES, Mark, parse_document, read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("1E6", 1e6),
        ("-1.5e+3", -1500.0),
        (".5", 0.5),
        ("1.", 1.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("12", 12),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("N", "N"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2001-12-14", "2001-12-14"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("'1e-6'", "1e-6"),
        ("1e", "1e"),
        ("1.2.3", "1.2.3"),
        ("!!str 5", "5"),
        ("[1, two, 3.0]", [1, "two", 3.0]),
        ("{a: {b: [c]}}", {"a": {"b": ["c"]}}),
    ],
)
def test_values(text: str, value: Any) -> None:
    document = parse_document("f", f"k: {text}")
    assert document.problems == []
    got = document.data["k"]
    assert got == value
    assert type(got) is type(value)


def test_nan() -> None:
    assert math.isnan(parse_document("f", "k: .nan").data["k"])


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a: 1\nb: 2\na: 3", 3, 1, "`a` is given twice"),
        ("a: {b: 1, b: 2}", 1, 11, "`b` is given twice"),
        ("a: !!python/object/apply:os.system [ls]", 1, 4, "the tag"),
        ("a: !!binary aGk=", 1, 4, "the tag"),
        ("a: !mine 1", 1, 4, "the tag"),
        ("1: 2", 1, 1, "a key must be a text"),
        ("[a]: 2", 1, 1, "a key must be a text"),
        ("a: " + "9" * 5000, 1, 4, "can't be read as int"),
        ("a: !!int x", 1, 4, "can't be read as int"),
        ("a: !!bool 3", 1, 4, "can't be read as bool"),
    ],
)
def test_mistakes_that_leave_the_rest_readable(
    text: str, line: int, column: int, message: str
) -> None:
    (problem,) = parse_document("f", text).problems
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message


#: Broken YAML: text, line, column, part of the message.
BROKEN = [
    ("", 1, 1, "empty"),
    ("# only a comment", 1, 1, "empty"),
    ("a:\n\tb: 1", 2, 1, "a tab"),
    ("a: 1\nb: - 1", 2, 4, "a list item where none is allowed"),
    ("a: b: c", 1, 5, "a `:` where none is allowed"),
    ("a\nb: 1", 2, 2, "a `:`"),
    ("[1, 2", 2, 1, "not closed"),
    ("{a: 1", 2, 1, "not closed"),
    ("'abc", 1, 5, "quote that is not closed"),
    ('a: "b\nc: 1', 2, 5, "quote that is not closed"),
    ("a: *b", 1, 4, "alias"),
    ("a: @b", 1, 4, "can't start a value"),
    ("a: `b", 1, 4, "can't start a value"),
    ("a:\n  b: 1\n c: 2", 3, 2, "does not fit its block"),
    ("a: 1\n---\nb: 2", 2, 1, "a second document"),
    ("a: \x00", 1, 4, "a character that YAML doesn't allow"),
    ('a: "\\q"', 1, 5, "unknown escape"),
    ("a: &x [*x]", 1, 4, "contains itself"),
    ("[" * 250_000, 1, 41, "levels deep"),
    ("- " * 120_000, 1, 81, "levels deep"),
    ("? " * 120_000, 1, 81, "levels deep"),
    ("{a: " * 60_000, 1, 161, "levels deep"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), BROKEN)
def test_broken(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_document("f.yaml", text)
    (problem,) = raised.value.problems
    assert message in problem.message
    assert problem.line == line
    assert abs((problem.column or 0) - column) <= 1  # the two parsers differ by one
    assert str(raised.value).startswith(f"f.yaml:{problem.line}:{problem.column}: ")


def test_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for level in range(1, 12):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    with pytest.raises(SpecError, match="aliases counted"):
        parse_document("f", "\n".join(lines))


def test_aliases_within_reason_work() -> None:
    document = parse_document("f", "a: &a {shape: [N]}\nb: *a\nc: *a")
    assert document.data["b"] == document.data["c"] == {"shape": ["N"]}


def test_places_of_keys_and_values() -> None:
    document = parse_document("f", "a:\n  - b: 1\n    long: [x,  y]\n")
    assert document.key(("a", 0, "long")) == Mark(3, 5)
    assert document.value(("a", 0, "long")) == Mark(3, 11)
    assert document.value(("a", 0, "long", 1)) == Mark(3, 16)
    assert document.value(("a", 0, "nothing", "below")) == Mark(2, 5)


@pytest.mark.parametrize(
    ("text", "word", "line", "column"),
    [
        ("k: a + foo", "foo", 1, 8),
        ("k: 'a + foo'", "foo", 1, 9),
        ('k: "a + foo"', "foo", 1, 9),
        ("k: 'it''s foo'", "foo", 1, 4),
        ("k: a +\n  b +\n   foo", "foo", 3, 4),
        ("k: >\n  a +\n\n  foo\n", "foo", 4, 3),
        ("k: |-\n  a +\n    foo\n", "foo", 3, 5),
        ('k: "a +\n   foo"', "foo", 2, 4),
        ("é: 'é + foo'", "foo", 1, 9),
        ("k: a +\r\n  foo\r\n", "foo", 2, 3),
    ],
)
def test_places_inside_texts(text: str, word: str, line: int, column: int) -> None:
    document = parse_document("f", text)
    ((key, value),) = document.data.items()
    assert document.inside((key,), value.index(word)) == Mark(line, column)


def test_end_of_a_block_text_is_behind_its_last_character() -> None:
    document = parse_document("f", "a: >-\n  x +\n   y\n\nb: 'q'\n")
    assert document.end(("a",)) == Mark(3, 5)
    assert document.value(("b",)) == Mark(5, 4)


def test_files(tmp_path: Path) -> None:
    good = tmp_path / "linear.yaml"
    good.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    assert read_document(str(good)).data == {"a": 1}
    with pytest.raises(SpecError, match=r"did you mean .*linear\.yaml"):
        read_document(str(tmp_path / "liner.yaml"))
    with pytest.raises(SpecError, match="is a folder"):
        read_document(str(tmp_path))
    (tmp_path / "big.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(SpecError, match="larger than 256 KiB"):
        read_document(str(tmp_path / "big.yaml"))
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(SpecError) as raised:
        read_document(str(tmp_path / "latin.yaml"))
    assert (raised.value.problems[0].line, raised.value.problems[0].column) == (2, 4)

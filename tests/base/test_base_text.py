"""Nearest names, and exceptions in one line."""

from __future__ import annotations

import difflib
from random import Random

import pytest

from gradlint.base.text import did_you_mean, error_line, first_line, nearest, typed_line


class Unprintable(Exception):
    """Its text can't be read."""

    def __str__(self) -> str:
        raise ValueError


def test_nearest_names_ignore_case_and_come_best_first() -> None:
    assert nearest("FLAOT32", ["float32", "float64", "int8"], limit=2, similarity=0.5) == [
        "float32",
        "float64",
    ]
    assert nearest("Relu", ["RELU"]) == ["RELU"]
    assert nearest("zzz", ["float32"]) == []
    assert nearest("flt", ["float32"], similarity=0.5) == ["float32"]
    assert nearest("x" * 100_000, ["x" * 60]) == ["x" * 60]


@pytest.mark.parametrize("similarity", [0.0, 0.3, 0.6, 0.75, 1.0])
def test_no_name_is_left_out_that_difflib_would_find(similarity: float) -> None:
    random = Random(1)
    known = ["".join(random.choices("abcd", k=random.randrange(9))) for _ in range(150)]
    known = sorted(set(known))
    for name in ["", "a", "abcdabcd" * 8, *(word[::-1] for word in known[:40])]:
        expected = difflib.get_close_matches(name[:60], known, n=3, cutoff=similarity)
        assert nearest(name, known, limit=3, similarity=similarity) == expected


def test_did_you_mean() -> None:
    assert did_you_mean("spce", ["spec", "report"]) == "did you mean `spec`?"
    assert did_you_mean("zzz", ["spec"], "choose from spec") == "choose from spec"
    assert did_you_mean("zzz", ["spec"]) == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("\n  first \nsecond"), "ValueError: first"),
        (ValueError(), "ValueError"),
        (Unprintable(), "Unprintable: <Unprintable, whose __str__ raises ValueError>"),
        (ValueError("x" * 300), "ValueError: " + "x" * 187 + "…"),
    ],
)
def test_an_error_in_one_line(error: Exception, line: str) -> None:
    assert error_line(error) == line
    assert len(line) <= 200


def test_lines() -> None:
    assert first_line("\n\n a b \n c") == "a b"
    assert first_line("abcdef", 4) == "abc…"
    assert typed_line("KeyError", "'x'") == "KeyError: 'x'"

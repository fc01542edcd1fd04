"""Findings with the same root: the root first, its consequences under it."""

from __future__ import annotations

from gradlint.checking.finding_causality import ROOTS, grouped
from gradlint.model.report import Finding
from gradlint.rules.catalogue import CATALOGUE

RANKS = {"error": 0, "warning": 1, "info": 2}


def found(code: str, severity: str = "error", input: str | None = None) -> Finding:
    return Finding(code, code.lower(), severity, f"message of {code}", input=input)


def shown(*findings: Finding) -> list[tuple[str, str | None]]:
    return [(one.code, one.follows) for one in grouped(findings)]


def test_consequences_come_under_their_root() -> None:
    assert shown(found("GL401"), found("GL605"), found("GL602"), found("GL702")) == [
        ("GL401", None),
        ("GL602", None),
        ("GL605", "GL602"),
        ("GL702", "GL602"),
    ]


def test_a_chain_comes_under_the_deepest_root() -> None:
    assert shown(found("GL609"), found("GL605"), found("GL603"), found("GL602")) == [
        ("GL602", None),
        ("GL609", "GL602"),
        ("GL605", "GL602"),
        ("GL603", "GL602"),
    ]


def test_another_input_is_another_fault() -> None:
    assert shown(found("GL401", input="x"), found("GL402", input="y")) == [
        ("GL401", None),
        ("GL402", None),
    ]
    assert shown(found("GL401", input="x"), found("GL402", input="x"))[1] == ("GL402", "GL401")


def test_a_note_explains_no_failure() -> None:
    assert shown(found("GL606", "info"), found("GL401")) == [("GL401", None), ("GL606", None)]
    assert shown(found("GL606", "warning"), found("GL401")) == [
        ("GL606", None),
        ("GL401", "GL606"),
    ]
    assert shown(found("GL606", "warning"), found("GL605", "info")) == [
        ("GL606", None),
        ("GL605", "GL606"),
    ]


def test_nothing_is_lost_and_worst_comes_first() -> None:
    many = [found(rule.code, severity) for rule in CATALOGUE for severity in ("info", "error")]
    result = grouped(many)
    assert sorted(map(id_of, result)) == sorted(map(id_of, many))
    roots = [place for place, one in enumerate(result) if one.follows is None]
    groups = [result[a:b] for a, b in zip(roots, [*roots[1:], len(result)], strict=True)]
    worst = [min(RANKS[one.severity] for one in group) for group in groups]
    assert worst == sorted(worst)


def id_of(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.severity


def test_roots_come_before_what_they_bring_about() -> None:
    depths = list(ROOTS)
    for depth, (root, consequences) in enumerate(ROOTS.items()):
        assert len(set(consequences)) == len(consequences), root
        above = set(depths[: depth + 1])
        assert not above.intersection(consequences), root

"""Findings with the same root: the root first, its consequences under it."""

from __future__ import annotations

from gradlint.checking.finding_causality import ROOTS, grouped
from gradlint.model.report import Finding, Grounds
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


def test_a_missing_gradient_leads_its_second_derivative() -> None:
    missing = found("GL103", "warning", input="init")
    assert shown(found("GL501", input="init"), missing) == [("GL103", None), ("GL501", "GL103")]
    assert shown(found("GL501", input="x"), missing) == [("GL501", None), ("GL103", None)]


def test_outputs_that_change_between_calls_lead_their_gradients() -> None:
    output = found("GL606", "warning")
    gradient = found("GL606", "warning", input="x")
    assert shown(gradient, output) == [("GL606", None), ("GL606", "GL606")]
    assert shown(gradient, found("GL606", "warning", input="y")) == [("GL606", None)] * 2
    assert shown(gradient, found("GL606", "info")) == [("GL606", None)] * 2


def at(code: str, where: str, input: str, severity: str = "error", **more) -> Finding:
    """A finding at inputs of a certain kind."""
    message = f"{code} for `{input}` at [0, 1] (12 of 12 elements)"
    return Finding(code, "", severity, message, input=input, grounds=Grounds(where=where), **more)


def test_what_shows_at_the_sample_leads_what_shows_beyond_it() -> None:
    beyond = at("GL302", "special", "y", "warning")
    assert shown(beyond, at("GL401", "sample", "x")) == [("GL401", None), ("GL302", "GL401")]
    assert shown(beyond, at("GL401", "extreme", "x")) == [("GL401", None), ("GL302", None)]
    assert shown(beyond, at("GL401", "sample", "x", "info")) == [("GL302", None), ("GL401", None)]
    here = at("GL302", "sample", "y")
    assert shown(here, at("GL401", "sample", "x")) == [("GL302", None), ("GL401", None)]


def test_what_shows_only_beyond_the_sample_explains_nothing_graver_at_it() -> None:
    beyond = at("GL302", "special", "x", "warning")
    wrong = at("GL501", "sample", "x")
    assert shown(beyond, wrong) == [("GL501", None), ("GL302", None)]
    as_grave = at("GL501", "sample", "x", "warning")
    assert shown(beyond, as_grave) == [("GL302", None), ("GL501", "GL302")]
    assert shown(at("GL302", "sample", "x"), wrong) == [("GL302", None), ("GL501", "GL302")]


def test_the_layout_leads_the_gradient_that_it_spoils() -> None:
    spoilt = at("GL401", "sample", "x", cause="layout-ignored")
    assert shown(spoilt, found("GL703", input="z")) == [("GL703", None), ("GL401", "GL703")]
    other = at("GL401", "sample", "x", cause="sign")
    assert shown(other, found("GL703", input="z")) == [("GL401", None), ("GL703", None)]


def test_one_fault_in_several_inputs_is_told_once() -> None:
    def swapped(one: str, other: str) -> Finding:
        text = f"swapped: what is returned for `{other}` is the gradient of `{one}` to 2e-10 in 40"
        return at("GL401", "sample", one, cause="swapped", cause_text=text)

    assert shown(swapped("b", "c"), swapped("c", "b")) == [("GL401", None), ("GL401", "GL401")]
    beyond = [at("GL302", "special", name, "warning") for name in "xyz"]
    assert [follows for _, follows in shown(*beyond)] == [None, "GL302", "GL302"]


def test_faults_that_differ_or_are_not_known_stay_apart() -> None:
    sign = at("GL401", "sample", "b", cause="sign", cause_text="sign: of `b`")
    scaled = at("GL401", "sample", "c", cause="scaled", cause_text="scaled: times `c`")
    assert [follows for _, follows in shown(sign, scaled)] == [None, None]
    unknown = [at("GL401", "sample", name) for name in "bc"]
    assert [follows for _, follows in shown(*unknown)] == [None, None]
    same = [at("GL401", "sample", "b", cause="sign") for _ in range(2)]
    assert [follows for _, follows in shown(*same)] == [None, None]


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

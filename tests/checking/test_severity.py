"""Only as loud as the evidence: every line of the policy, from both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.checking.severity import MATERIAL, POLICY, TABLE, as_loud_as_evidence, decided
from gradlint.model.report import SEVERITIES, Finding, Grounds
from gradlint.model.rule import Outcome
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import select_rules

SETTINGS = Settings()

DOCS = Path(__file__).parents[2] / "gradlint" / "docs" / "rules.md"

#: Grounds → severity, where the rule allows an error.
CASES = {
    "nothing known": (Grounds(), "error"),
    "at an odd size": (Grounds("other-size"), "error"),
    "raises at the sample": (Grounds(silent=False), "error"),
    "raises at an odd size": (Grounds("other-size", silent=False), "error"),
    "another rank": (Grounds("other-rank"), "warning"),
    "another rank, raises": (Grounds("other-rank", silent=False), "info"),
    "no dimensions": (Grounds("no-dimensions"), "warning"),
    "no dimensions, raises": (Grounds("no-dimensions", silent=False), "info"),
    "empty": (Grounds("empty"), "warning"),
    "empty, raises": (Grounds("empty", silent=False), "info"),
    "all special": (Grounds("special"), "warning"),
    "extreme": (Grounds("extreme"), "warning"),
    "left out": (Grounds("left-out"), "warning"),
    "silent under a transform": (Grounds("transform"), "error"),
    "raises under a transform": (Grounds("transform", silent=False), "info"),
    "silent with mixed dtypes": (Grounds("mixed-dtypes"), "error"),
    "raises with mixed dtypes": (Grounds("mixed-dtypes", silent=False), "info"),
    "material": (Grounds(relative_error=2 * MATERIAL), "error"),
    "not material": (Grounds(relative_error=0.5 * MATERIAL), "info"),
    "one element": (Grounds(relative_error=1e-8, element_error=3e-3, beyond_bar=True), "error"),
    "no element": (Grounds(relative_error=1e-8, element_error=3e-4, beyond_bar=True), "info"),
    "a draw": (Grounds(relative_error=1.0, explained="estimate"), "warning"),
    "an unused argument": (Grounds(relative_error=1.0, explained="unused"), "warning"),
    "a tangent vector": (Grounds(relative_error=1.0, explained="tangent"), "warning"),
    "a natural gradient": (Grounds(relative_error=1.0, explained="geometry"), "warning"),
    "a subspace": (Grounds(relative_error=1.0, explained="subspace"), "warning"),
    "confirmed cause": (Grounds(relative_error=1e-6, confirmed=True), "error"),
    "within the bars": (Grounds(relative_error=1e-1, beyond_bar=False), "info"),
    "within the bars, confirmed": (
        Grounds(relative_error=1e-1, beyond_bar=False, confirmed=True),
        "error",
    ),
    "no element measured": (Grounds(relative_error=1e-1, beyond_bar=None), "error"),
    "no size of the gradient": (Grounds(relative_error=float("inf")), "error"),
    "not a number": (Grounds(relative_error=float("nan")), "error"),
    "a solver": (Grounds(relative_error=1e-1, explained="solver"), "info"),
    "the measurement": (Grounds(relative_error=5e-3, explained="measurement"), "info"),
    "raises at a guess": (Grounds(silent=False, guessed=True), "warning"),
    "raises at an option": (Grounds(silent=False, chosen="known"), "warning"),
    "raises at a number": (Grounds(silent=False, chosen="by accident"), "info"),
    "raises at a guess and a number": (
        Grounds(silent=False, guessed=True, chosen="by accident"),
        "info",
    ),
    "silent at a number": (Grounds(chosen="by accident"), "error"),
    "silent at a guess": (Grounds(guessed=True), "error"),
    "another rank, raises at a guess": (Grounds("other-rank", silent=False, guessed=True), "info"),
    "a surrogate in words": (Grounds(explained="surrogate"), "info"),
    "a clamped slope": (Grounds("special", explained="clipped"), "info"),
    "a usual surrogate": (Grounds(explained="usual"), "info"),
    "a substitute in words": (Grounds(explained="substitute"), "warning"),
    "relevance in words": (Grounds(explained="attribution"), "warning"),
    "a constant in words": (Grounds(explained="constant"), "info"),
    "a guessed function that backward calls": (Grounds(explained="called"), "info"),
    "a gradient that nobody asked for": (Grounds(explained="asked"), "warning"),
    "a constant of a Function inside": (Grounds(explained="no-gradient"), "info"),
    "a zero divisor": (Grounds("special", explained="divisor"), "info"),
    "a forward that is not finite at a guess": (
        Grounds("extreme", explained="undefined"),
        "info",
    ),
    "another function": (Grounds("other-rank", explained="other-function"), "info"),
    "elements that forward does not read": (
        Grounds("other-size", silent=False, explained="unread"),
        "info",
    ),
    "signs of guessed inputs": (Grounds(explained="signs"), "info"),
    "a number of backward only": (Grounds(explained="backward-only"), "info"),
    "a guard that was made large": (Grounds(explained="guard"), "info"),
    "far beyond one sign": (Grounds("extreme", explained="far"), "info"),
    "overwritten": (Grounds("sample", explained="overwritten"), "info"),
    "far apart": (Grounds("extreme", explained="far-apart"), "info"),
    "digits that cancel": (Grounds("extreme", explained="rounding"), "info"),
    "digits that cancel at a size": (Grounds("other-size", explained="rounding"), "info"),
    "kept in 8 bits": (Grounds(relative_error=3e-2, explained="stored"), "info"),
    "a function that was guessed": (Grounds(explained="stand-in"), "warning"),
    "beyond a clamp": (Grounds("other-size", explained="clamped"), "info"),
    "guessed beyond a clamp": (Grounds("sample", explained="clamped-guess"), "warning"),
    "broadcast by accident": (Grounds(explained="broadcast"), "info"),
    "a size that forward runs out of": (Grounds("other-size", explained="degenerate"), "info"),
    "no derivative under autograd": (Grounds("other-size", explained="singular"), "info"),
    "zero in a parameter": (Grounds("special", explained="parameter"), "info"),
    "refuses openly": (Grounds(silent=False, refused=True), "info"),
    "PyTorch's own": (Grounds(torch_owned=True), "info"),
}


@pytest.mark.parametrize("name", CASES)
def test_severity(name: str) -> None:
    grounds, expected = CASES[name]
    severity, words = decided("error", grounds)
    assert severity == expected
    assert bool(words) == (severity != "error")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("ceiling", SEVERITIES)
def test_it_is_never_raised(name: str, ceiling: str) -> None:
    severity, words = decided(ceiling, CASES[name][0])
    assert SEVERITIES.index(severity) >= SEVERITIES.index(ceiling)
    assert bool(words) == (severity != ceiling)


def test_every_reason_decides_a_case() -> None:
    given = {decided("error", grounds)[1] for grounds, _ in CASES.values()}
    assert given == {"", *(reason.words for reason in POLICY)}


def finding(severity: str, **known: object) -> Finding:
    return Finding("GL401", "wrong_gradient", severity, "m", grounds=Grounds(**known))


def test_a_failure_of_information_alone_is_a_pass_with_its_error_as_resolving_power() -> None:
    found = as_loud_as_evidence(
        Outcome("fail", [finding("error", relative_error=7e-6)], resolution=1e-9), SETTINGS
    )
    assert (found.verdict, found.resolution) == ("pass", 7e-6)
    assert [item.severity for item in found.findings] == ["info"]
    assert "no cause is confirmed" in found.findings[0].evidence["info because"]


@pytest.mark.parametrize(("explained", "resolution"), [("solver", 0.3), ("degenerate", 1e-9)])
def test_what_is_hardly_meant_does_not_limit_the_resolving_power(
    explained: str, resolution: float
) -> None:
    found = as_loud_as_evidence(
        Outcome("fail", [finding("error", relative_error=0.3, explained=explained)], 1e-9), SETTINGS
    )
    assert (found.verdict, found.resolution) == ("pass", resolution)


def test_one_loud_finding_keeps_the_failure() -> None:
    found = as_loud_as_evidence(
        Outcome("fail", [finding("error", relative_error=7e-6), finding("error")]), SETTINGS
    )
    assert found.verdict == "fail"
    assert [item.severity for item in found.findings] == ["info", "error"]


def test_other_verdicts_stay() -> None:
    assert as_loud_as_evidence(Outcome("fail"), SETTINGS).verdict == "fail"
    assert (
        as_loud_as_evidence(Outcome("inconclusive", [finding("info")]), SETTINGS).verdict
        == "inconclusive"
    )
    assert as_loud_as_evidence(Outcome("skipped", note="n"), SETTINGS).note == "n"


def test_the_page_has_the_table() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [severity for severity, _ in TABLE] == list(SEVERITIES)
    for severity, when in TABLE:
        assert f"| {severity} | {when} |" in text


@pytest.mark.parametrize(
    ("levels", "severity", "known", "verdict", "expected"),
    [
        ({}, "error", {}, "fail", ("fail", "error")),
        ({"GL401": "info"}, "error", {}, "fail", ("pass", "info")),
        ({"GL4": "warning"}, "error", {}, "fail", ("fail", "warning")),
        ({"GL4": "info", "GL401": "warning"}, "error", {}, "fail", ("fail", "warning")),
        ({"GL402": "info"}, "error", {}, "fail", ("fail", "error")),
        # Milder because of the evidence, and not made louder by what the settings say.
        ({"GL401": "error"}, "error", {"relative_error": 7e-6}, "fail", ("pass", "info")),
        ({"GL401": "error"}, "info", {}, "pass", ("pass", "info")),
        ({"GL401": "warning"}, "error", {"where": "special"}, "fail", ("fail", "warning")),
    ],
)
def test_settings_take_the_place_of_the_severity_of_a_rule(
    levels: dict[str, str],
    severity: str,
    known: dict[str, object],
    verdict: str,
    expected: tuple[str, str],
) -> None:
    settings = Settings(severities=tuple(levels.items()))
    found = as_loud_as_evidence(Outcome(verdict, [finding(severity, **known)]), settings)
    assert (found.verdict, found.findings[0].severity) == expected


def test_a_rule_that_informs_can_be_made_to_fail() -> None:
    settings = Settings(severities=(("GL503", "error"),))
    told = Finding("GL503", "once_differentiable", "info", "m", grounds=Grounds())
    found = as_loud_as_evidence(Outcome("pass", [told]), settings)
    assert (found.verdict, found.findings[0].severity) == ("fail", "error")
    assert found.findings[0].evidence["error because"] == "the settings say so"


@pytest.mark.parametrize(
    ("levels", "select", "expected"),
    [
        ({}, None, {"GL701", "GL702"}),
        ({"GL7": "off"}, None, set()),
        ({"GL7": "off", "GL702": "info"}, None, {"GL702"}),
        ({"GL7": "off"}, ("GL701",), {"GL701"}),
        ({"GL701": "off"}, ("GL7",), {"GL702"}),
    ],
)
def test_a_rule_that_is_off_is_not_selected(
    levels: dict[str, str], select: tuple[str, ...] | None, expected: set[str]
) -> None:
    settings = Settings(severities=tuple(levels.items()), select=select)
    assert {rule.code for rule in select_rules(settings)} & {"GL701", "GL702"} == expected

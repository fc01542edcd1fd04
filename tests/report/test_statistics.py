"""--statistics: findings counted by rule, with names."""

from __future__ import annotations

from gradlint.model.report import Finding, Report, TargetReport
from gradlint.report.statistics import counted, statistics_text


def finding(code: str, name: str) -> Finding:
    return Finding(code, name, "error", "m")


def test_counts_by_rule_most_first() -> None:
    many = [finding("GL602", "grad_output_mutated")] * 10
    two = [finding("GL401", "wrong_gradient"), finding("GL101", "wrong_number")]
    report = Report(
        [TargetReport("a", findings=[*two, *many]), TargetReport("b", findings=two[:1])]
    )
    assert counted(report) == [
        ("GL602", "grad_output_mutated", 10),
        ("GL401", "wrong_gradient", 2),
        ("GL101", "wrong_number", 1),
    ]
    assert statistics_text(report) == (
        "10  GL602  grad_output_mutated\n 2  GL401  wrong_gradient\n 1  GL101  wrong_number\n"
    )


def test_without_findings() -> None:
    assert statistics_text(Report([TargetReport("a")])) == "No findings.\n"

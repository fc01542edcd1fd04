"""Findings accepted by a comment, by the op, or in the configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from gradlint.base.errors import GradlintError
from gradlint.checking.examine import ignored_rules, without_suppressed
from gradlint.model.report import Finding, Location
from gradlint.model.resolve import resolve_settings
from gradlint.model.rule import Outcome
from gradlint.model.settings import Settings
from gradlint.rules.catalogue import CATALOGUE, rule_names
from gradlint.targets.build import from_object

SOURCE = """
import torch

class Op(torch.autograd.Function):{on_class}
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):{on_def}
        wrong = grad * 3{on_line}
        return wrong
"""


def outcome_at(path: Path, code: str) -> Outcome:
    """A finding of ``code`` in the line of ``wrong = …``."""
    finding = Finding(code, "name", "error", "wrong", location=Location(str(path), 11, 9, 11, 20))
    return without_suppressed(Outcome("fail", [finding]))


@pytest.mark.parametrize(
    ("place", "comment", "code", "reason"),
    [
        ("on_line", "  # gradlint: ignore[GL401] known", "GL401", "known"),
        ("on_line", "  # gradlint: ignore[GL4]", "GL401", ""),
        ("on_def", "  # gradlint: ignore[GL401, GL602] - by contract", "GL602", "by contract"),
        ("on_class", "  # gradlint: ignore[GL602]", "GL602", ""),
        ("on_line", "  # gradlint: ignore[GL402]", "GL401", None),
        ("on_line", "  # gradlint: ignore", "GL401", None),
        ("on_line", "  # gradlint: ignore[everything]", "GL401", None),
        ("on_line", "  # gradlint: ignore[] all of it", "GL401", None),
    ],
)
def test_comments(tmp_path: Path, place: str, comment: str, code: str, reason: str | None) -> None:
    path = tmp_path / "ops.py"
    slots = {"on_class": "", "on_def": "", "on_line": "", place: comment}
    path.write_text(SOURCE.format(**slots), encoding="utf-8")
    outcome = outcome_at(path, code)
    if reason is None:
        assert (outcome.verdict, len(outcome.findings)) == ("fail", 1)
    else:
        assert (outcome.verdict, outcome.findings) == ("skipped", [])
        told = f"accepted in {path}:11:9"
        assert outcome.note == (f"{told}: {reason}" if reason else told)


def test_other_findings_stay(tmp_path: Path) -> None:
    path = tmp_path / "ops.py"
    comment = "  # gradlint: ignore[GL602]"
    path.write_text(SOURCE.format(on_class="", on_def="", on_line=comment), encoding="utf-8")
    place = Location(str(path), 11, 9)
    two = [Finding(code, "name", "error", "wrong", location=place) for code in ("GL602", "GL401")]
    outcome = without_suppressed(Outcome("fail", two))
    assert outcome.verdict == "fail"
    assert [finding.code for finding in outcome.findings] == ["GL401"]


def test_rules_left_out_for_an_op(load_module: Callable[[str], ModuleType]) -> None:
    slots = {"on_class": "  # gradlint: ignore[GL5] first order only", "on_def": "", "on_line": ""}
    op = from_object(load_module(SOURCE.format(**slots)).Op)
    op.target = "mylib/legacy.py:Op"
    ignores = (("mylib/*", ("GL602",)), ("*:Other", ("GL1",)))
    settings = Settings(per_target_ignores=ignores)
    found = ignored_rules(op, list(CATALOGUE), settings, isolated=False)
    assert found["GL501"] == "ignored by the op: first order only"
    assert {code for code in found if not code.startswith("GL5")} <= {"GL602"}
    # Where a crash harms nobody, they run, so that it is known whether anything is to accept.
    assert set(ignored_rules(op, list(CATALOGUE), settings)) <= {"GL602"}


def test_what_the_op_accepts_is_taken_out_wherever_it_was_found() -> None:
    findings = [Finding(code, "name", "error", "wrong") for code in ("GL501", "GL502", "GL401")]
    outcome = without_suppressed(Outcome("fail", findings), {"GL5": "first order", "GL502": "no"})
    assert [finding.code for finding in outcome.findings] == ["GL401"]
    assert [(item.code, item.under, item.reason) for item in outcome.accepted] == [
        ("GL501", "GL5", "first order"),
        ("GL502", "GL502", "no"),
    ]
    assert outcome.note == "ignored by the op: first order; ignored by the op: no"


def test_configuration(tmp_path: Path) -> None:
    text = '[tool.gradlint.per-target-ignores]\n"legacy/*.py" = ["GL401", "gl5"]\n'
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    settings = resolve_settings({}, cwd=tmp_path, environ={}, rules=rule_names())
    assert settings.per_target_ignores == (("legacy/*.py", ("GL401", "GL5")),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('per-target-ignores = ["GL401"]', "expected a table"),
        ('per-target-ignores = {"a" = ["GL499"]}', "no rule is called 'GL499'"),
    ],
)
def test_configuration_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.gradlint]\n{text}\n", encoding="utf-8")
    with pytest.raises(GradlintError, match="per-target-ignores") as caught:
        resolve_settings({}, cwd=tmp_path, environ={}, rules=rule_names())
    assert message in str(caught.value)

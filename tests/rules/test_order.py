"""The order in which rules run."""

from __future__ import annotations

from gradlint.checking.run_order import in_run_order, turn
from gradlint.rules.catalogue import TABLE


def test_every_rule_has_a_turn() -> None:
    ordered = in_run_order(TABLE)
    assert sorted(rule.code for rule in ordered) == [rule.code for rule in TABLE]
    assert all(turn(rule.code) < turn("") for rule in TABLE)


def test_looking_comes_before_calling_and_compiling_last() -> None:
    families = [rule.code[:3] for rule in in_run_order(TABLE) if rule.code != "GL110"]
    first_at = {family: families.index(family) for family in dict.fromkeys(families)}
    assert list(first_at)[:5] == ["GL0", "GL1", "GL2", "GL3", "GL4"]
    assert first_at["GL4"] < first_at["GL5"] < first_at["GL8"]
    codes = [rule.code for rule in in_run_order(TABLE)]
    assert codes.index("GL401") < codes.index("GL501")

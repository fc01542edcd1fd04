"""When rules run: looking comes before calling, and compiling comes last."""

from __future__ import annotations

from gradlint.model.rule import Rule, Stage
from gradlint.rules.catalogue import CATALOGUE


def codes_at(stage: Stage) -> set[str]:
    return {rule.code for rule in CATALOGUE if rule.stage is stage}


def stage_of(code: str) -> Stage:
    (rule,) = (rule for rule in CATALOGUE if rule.code == code)
    return rule.stage


def test_only_the_runner_sees_what_ends_a_process_and_what_is_suppressed() -> None:
    suppressions = {"GL010", "GL011", "GL012"}
    ended = {"GL001", "GL002", "GL005", "GL006", "GL009", "GL805"}
    assert codes_at(Stage.RUNNER) == ended | suppressions


def test_rules_that_read_the_run_come_first() -> None:
    families = {code[:3] for code in codes_at(Stage.RUN)}
    assert families == {"GL0", "GL1", "GL2", "GL3"}


def test_values_are_measured_before_what_is_compared_with_them() -> None:
    assert stage_of("GL401") is Stage.VALUES
    for family in ("GL5", "GL6", "GL7", "GL8", "GL9"):
        stages = {rule.stage for rule in CATALOGUE if rule.code.startswith(family)}
        assert min(stages - {Stage.RUNNER}) > Stage.VALUES
    assert stage_of("GL401") < stage_of("GL402") <= stage_of("GL501")


def test_compiling_comes_last() -> None:
    assert codes_at(Stage.TRANSFORMS) == {r.code for r in CATALOGUE if r.family == "transforms"}
    assert max(Stage) is Stage.TRANSFORMS
    compiled = {rule.code for rule in CATALOGUE if "torch.compile" in rule.needs}
    assert compiled <= codes_at(Stage.TRANSFORMS)


def test_costly_stages_have_no_rule_without_a_cost() -> None:
    def costs(rule: Rule) -> bool:
        return rule.calls.most != (0, 0) or rule.calls.each_input != (0, 0)

    late = [rule for rule in CATALOGUE if rule.stage >= Stage.SIZES and rule.family != "device"]
    assert [rule.code for rule in late if not costs(rule)] == []

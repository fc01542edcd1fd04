"""What accepts findings: left over, without a reason, of no effect; and when nothing is said."""

from __future__ import annotations

import ast
import tokenize
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gradlint.model.report import Finding, Location, Report, TargetReport
from gradlint.model.settings import Settings
from gradlint.running import suppressions
from gradlint.running.run import execute
from gradlint.running.suppressions import add_suppression_findings

HYGIENE = ("GL010", "GL011", "GL012")

SOURCE = """
import torch
{before}
class Op(torch.autograd.Function):{on_class}
    {attribute}
    @staticmethod
    def forward(ctx, x):{on_forward}
        return x * 2

    @staticmethod
    def backward(ctx, grad):{on_def}
        if grad.dim() > 7:
            return grad * 0{on_dead_line}
        return grad * {factor}{on_line}

    @staticmethod
    def sample_inputs():
        return (torch.linspace(1.0, 2.0, 3, dtype=torch.float64, requires_grad=True),)
{after}
"""

SETTINGS = Settings(seed=3, select=("GL0", "GL401", "GL602", "GL604"), jobs=2)


def run(folder: Path, settings: Settings = SETTINGS, *, factor: int = 2, **slots: str) -> Report:
    names = ("before", "on_class", "attribute", "on_forward", "on_def", "on_dead_line", "on_line")
    filled: dict[str, Any] = {**dict.fromkeys((*names, "after"), ""), "factor": factor, **slots}
    (folder / "ops.py").write_text(SOURCE.format(**filled), encoding="utf-8")
    return execute(["ops.py:Op"], settings).report


def about(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.code in HYGIENE]


def only(report: Report) -> Finding:
    (finding,) = about(report)
    return finding


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


KNOWN = "  # gradlint: ignore[GL401] the factor is known"


def test_an_unused_comment(tmp_path: Path) -> None:
    report = run(tmp_path, on_line=KNOWN)
    finding = only(report)
    assert (finding.code, finding.name) == ("GL010", "unused_suppression")
    assert finding.severity == "warning"
    assert finding.message == "nothing is left to accept: GL401 wrong_gradient passes"
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("ops.py", 14)
    assert finding.evidence["reason given"] == "the factor is known"
    # The operator is right, and the run fails all the same.
    assert report.targets[0].verdict == "pass"
    assert report.exit_code == 1


@pytest.mark.parametrize("slot", ["on_line", "on_def", "on_class"])
def test_a_comment_that_is_used(tmp_path: Path, slot: str) -> None:
    report = run(tmp_path, factor=3, **{slot: KNOWN})
    assert report.findings == []
    (check,) = (c for c in report.targets[0].checks if c.code == "GL401")
    (accepted,) = check.accepted
    assert (accepted.code, accepted.under) == ("GL401", "GL401")
    assert accepted.reason == "the factor is known"
    assert report.exit_code == 0


@pytest.mark.parametrize(("slot", "line"), [("on_class", 4), ("on_def", 11)])
def test_a_definition_accepts_what_is_not_found(tmp_path: Path, slot: str, line: int) -> None:
    # A line of backward never ran: what is accepted might be found there.
    assert about(run(tmp_path, **{slot: KNOWN})) == []
    source = (tmp_path / "ops.py").read_text()
    source = source.replace("        if grad.dim() > 7:\n            return grad * 0\n", "")
    (tmp_path / "ops.py").write_text(source)
    finding = only(execute(["ops.py:Op"], SETTINGS).report)
    assert (finding.code, finding.location and finding.location.line) == ("GL010", line)


@pytest.mark.parametrize(
    ("slots", "codes"),
    [
        ({"on_line": "  # gradlint: ignore[GL401] atomics on cuda"}, []),
        ({"on_line": "  # gradlint: ignore[GL401] GPUs round it"}, []),
        ({"on_line": KNOWN, "on_forward": "\n        x = x + 0 if x.is_cuda else x"}, []),
        ({"on_line": KNOWN, "after": "import math as triton"}, []),
        ({"on_line": KNOWN, "after": "miraculous = escargpu = 1"}, ["GL010"]),
        ({"on_line": "  # gradlint: ignore[GL401] exact on the CPU"}, ["GL010"]),
    ],
)
def test_what_another_device_may_need_is_not_unused(
    tmp_path: Path, slots: dict[str, str], codes: list[str]
) -> None:
    report = run(tmp_path, **slots)
    assert [finding.code for finding in about(report)] == codes


def test_a_comment_on_a_line_that_never_ran_is_not_unused(tmp_path: Path) -> None:
    assert about(run(tmp_path, on_dead_line=KNOWN)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"select": ("GL0", "GL602")},
        {"ignore": ("GL401",)},
        {"per_target_ignores": (("ops.py", ("GL401",)),)},
        {"max_calls": 1},
    ],
)
def test_nothing_is_said_where_the_check_did_not_run(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert about(run(tmp_path, replace(SETTINGS, **changes), on_line=KNOWN)) == []


def test_nothing_is_said_of_second_order_under_order_1(tmp_path: Path) -> None:
    comment = "  # gradlint: ignore[GL501] known"
    settings = Settings(seed=3, select=("GL0", "GL401", "GL501"), jobs=1)
    assert only(run(tmp_path, settings, on_line=comment)).code == "GL010"
    settings = Settings(seed=3, select=("GL0", "GL401", "GL501"), jobs=1, order=1)
    assert about(run(tmp_path, settings, on_line=comment)) == []


def test_nothing_is_said_while_a_device_is_absent(tmp_path: Path) -> None:
    report = run(tmp_path, on_line=KNOWN)
    report.targets[0].findings.clear()
    report.skipped["cuda"] = "checks on cuda: not available here"
    add_suppression_findings(report, SETTINGS)
    assert about(report) == []
    report.skipped.clear()
    add_suppression_findings(report, SETTINGS)
    assert only(report).code == "GL010"


def test_nothing_is_said_of_rules_that_need_a_gpu(tmp_path: Path) -> None:
    settings = Settings(seed=3, select=("GL0", "GL401", "GL802"), jobs=1)
    assert about(run(tmp_path, settings, on_line="  # gradlint: ignore[GL802] atomics")) == []


def test_nothing_is_said_of_what_the_runner_finds(tmp_path: Path) -> None:
    assert about(run(tmp_path, on_line="  # gradlint: ignore[GL006] slow")) == []


def test_nothing_is_said_where_a_class_is_derived_from_it(tmp_path: Path) -> None:
    heir = "\nclass Heir(Op):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 3\n"
    assert about(run(tmp_path, on_line=KNOWN, after=heir)) == []


def test_another_operator_may_need_the_comment(tmp_path: Path) -> None:
    other = (
        "\ndef op(x):\n    return Op.apply(x) * 1.5\n"
        "op.sample_inputs = lambda: (torch.ones(2, dtype=torch.float64, requires_grad=True),)\n"
    )
    run(tmp_path, factor=3, on_line=KNOWN, after=other)
    report = execute(["ops.py:Op", "ops.py:op"], SETTINGS).report
    assert about(report) == []


def test_untrusted_code_accepts_nothing_and_so_nothing_is_unused(tmp_path: Path) -> None:
    report = run(tmp_path, on_line=KNOWN)
    report.targets[0].findings.clear()
    add_suppression_findings(report, replace(SETTINGS, untrusted=True))
    assert report.findings == []


def test_a_reason_is_required(tmp_path: Path) -> None:
    both = about(run(tmp_path, factor=3, on_line="  # gradlint: ignore[GL401, GL602]"))
    assert [finding.code for finding in both] == ["GL011", "GL010"]  # GL602 is not found
    finding = both[0]
    assert finding.severity == "warning"
    assert finding.message == "GL401, GL602 are accepted without a reason"
    assert "# gradlint: ignore[GL401, GL602] the reason" in finding.help


@pytest.mark.parametrize(
    ("comment", "words", "step"),
    [
        ("# gradlint: ignore[GL4011] known", "no rule has the code `GL4011`", "GL401"),
        ("# gradlint: ignore[gl401] known", "no rule has the code `gl401`", "GL401"),
        ("# gradlint: ignore[wrong_gradient] known", "`wrong_gradient`", "write its code: GL401"),
        ("# gradlint: ignore[wrong_gradeint] known", "`wrong_gradeint`", "GL401 wrong_gradient"),
        ("# gradlint: ignore[xyz] known", "`xyz`", "`gradlint rules` lists all codes"),
        ("# gradlint: ignore known", "does not have the form", "# gradlint: ignore[GL602] the"),
        ("# gradlint: ignore[] known", "does not have the form", "# gradlint: ignore[GL602] the"),
        ("# gradlint: ignroe[GL401] known", "does not have the form", "# gradlint: ignore[GL602]"),
    ],
)
def test_what_accepts_nothing_is_told(tmp_path: Path, comment: str, words: str, step: str) -> None:
    report = run(tmp_path, factor=3, on_line=f"  {comment}")
    finding = only(report)
    assert finding.code == "GL012"
    assert words in finding.message
    assert step in finding.help
    assert "GL401" in [finding.code for finding in report.findings]


@pytest.mark.parametrize("comment", ["# gradlint: see the docs", "# gradlint is a tool", "# noqa"])
def test_other_comments_are_left_alone(tmp_path: Path, comment: str) -> None:
    assert about(run(tmp_path, on_line=f"  {comment}")) == []


def test_a_text_that_quotes_a_comment_is_none(tmp_path: Path) -> None:
    quoted = '"""As in # gradlint: ignore[GL4011]."""'
    assert about(run(tmp_path, attribute=quoted)) == []


def test_what_the_class_declares(tmp_path: Path) -> None:
    listed = only(run(tmp_path, factor=3, attribute='gradlint_ignore = ["GL401"]'))
    assert listed.code == "GL011"
    assert 'gradlint_ignore = {"GL401": "the reason"}' in listed.help
    declared = 'gradlint_ignore = {"GL401": "known"}'
    assert about(run(tmp_path, factor=3, attribute=declared)) == []


SPEC = """
op: ops.py:Op
inputs: {x: {shape: [3]}}
ignore:
  - {code: GL602, reason: in place on purpose}
  - {code: GL802, reason: atomics}
"""


def test_an_entry_of_a_spec(tmp_path: Path) -> None:
    run(tmp_path)
    source = (tmp_path / "ops.py").read_text()
    source = source.replace("        if grad.dim() > 7:\n            return grad * 0\n", "")
    (tmp_path / "ops.py").write_text(source)
    (tmp_path / "op.yaml").write_text(SPEC)
    finding = only(execute(["op.yaml"], SETTINGS).report)
    assert finding.code == "GL010"
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("op.yaml", 5)
    (tmp_path / "ops.py").write_text(source.replace("return grad * 2", "return grad.mul_(2)"))
    assert about(execute(["op.yaml"], SETTINGS).report) == []


def test_the_rules_can_be_left_out(tmp_path: Path) -> None:
    settings = Settings(seed=3, select=("GL401",), jobs=1)
    assert about(run(tmp_path, settings, on_line=KNOWN)) == []


CRASHES = """
import os
import torch

class Op(torch.autograd.Function):  # gradlint: ignore[GL7] other layouts are not supported
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if not grad.is_contiguous():
            os._exit(3)
        return grad * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3, 4, dtype=torch.float64, requires_grad=True),)
"""


def test_a_crash_in_a_rule_that_is_accepted_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(CRASHES)
    settings = Settings(seed=3, select=("GL0", "GL401", "GL701", "GL702"), jobs=1)
    report = execute(["ops.py:Op"], settings).report
    assert report.findings == []
    assert report.targets[0].verdict == "pass"
    accepted = [check for check in report.targets[0].checks if check.accepted]
    assert accepted
    assert all(check.verdict == "skipped" for check in accepted)
    assert "process crashed" in accepted[0].note
    (tmp_path / "ops.py").write_text(CRASHES.replace("GL7]", "GL6]"))
    assert "GL005" in [f.code for f in execute(["ops.py:Op"], settings).report.findings]


def test_a_file_of_many_operators_is_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not for each of them: one of 2,000 took a tenth of a second then."""
    definition = "class Op{}(Function):  # gradlint: ignore[GL401] known\n    pass\n"
    (tmp_path / "many.py").write_text("".join(map(definition.format, range(30))))
    places = [Location("many.py", 2 * number + 1) for number in range(30)]
    targets = [
        TargetReport(f"many.py:Op{number}", "function", location=place, verdict="pass")
        for number, place in enumerate(places)
    ]
    report = Report(seed=0, gradlint="", environment={}, fail_on="warning", settings={})
    report.targets = targets
    walked: list[int] = []
    walk, tokens = ast.walk, tokenize.generate_tokens

    def counted(node: ast.AST) -> Any:
        walked.append(isinstance(node, ast.Module))
        return walk(node)

    def counted_tokens(read: Any) -> Any:
        walked.append(1)
        return tokens(read)

    monkeypatch.setattr(ast, "walk", counted)
    monkeypatch.setattr(tokenize, "generate_tokens", counted_tokens)
    add_suppression_findings(report, SETTINGS)
    assert sum(walked) == 2
    (source,) = {suppressions._definition(target)[0] for target in targets}  # type: ignore[index]
    assert suppressions._bases(source) == {"Function"}

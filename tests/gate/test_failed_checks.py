"""Failed checks: they are kept, and made again with the seed and inputs that they had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gradlint.base.errors import GradlintError
from gradlint.gate.choice import CACHE
from gradlint.gate.failed_checks import MOST_KEPT, chosen, read_checks, remember_checks
from gradlint.model.report import Finding, Report, TargetReport
from tests.conftest import Command

WRONG = """
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * {factor} * x
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def report(**findings: list[Finding]) -> Report:
    targets = [TargetReport(f"ops.py:{name}", verdict="fail") for name in findings]
    for target, found in zip(targets, findings.values(), strict=True):
        target.findings = found
        target.verdict = "fail" if found else "pass"
    return Report(targets=targets, settings={"seed": 5})


def wrong(code: str = "GL401") -> Finding:
    return Finding(code, "wrong_gradient", "error", "wrong gradient for `x`", input="x")


def test_failures_are_kept_until_their_target_is_checked_again() -> None:
    remember_checks(report(A=[wrong()], B=[wrong()]))
    first = read_checks(print)
    assert [check.target for check in first] == ["ops.py:A", "ops.py:B"]
    assert first[0].settings["seed"] == 5
    remember_checks(report(B=[]))
    assert read_checks(print) == first[:1]


def test_the_id_of_a_finding_stays_the_same() -> None:
    remember_checks(report(A=[wrong()]))
    before = read_checks(print)[0].id
    remember_checks(report(A=[wrong("GL302"), wrong()]))
    assert before in [check.id for check in read_checks(print)]


def test_no_more_are_kept_than_anyone_needs() -> None:
    remember_checks(report(**{f"Op{k}": [wrong()] for k in range(MOST_KEPT + 9)}))
    kept = read_checks(print)
    assert len(kept) == MOST_KEPT
    assert kept[-1].target == f"ops.py:Op{MOST_KEPT + 8}"


def test_nothing_is_made_where_nothing_fails() -> None:
    remember_checks(report(A=[]))
    assert not Path(CACHE).exists()


@pytest.mark.parametrize("text", ["", "[]", '{"version": 9, "checks": []}', '{"version": 1}'])
def test_a_damaged_file_is_told_and_not_looked_at(text: str) -> None:
    Path(CACHE).mkdir()
    Path(CACHE, "failed_checks.json").write_text(text)
    told: list[str] = []
    assert read_checks(told.append) == []
    assert "is damaged" in told[0]


def test_an_unknown_id_is_a_mistake() -> None:
    with pytest.raises(GradlintError, match="no failed check 'zz'"):
        chosen([], ["zz"])


def test_replay_says_what_is_mended(gradlint: Command, tmp_path: Path) -> None:
    path = tmp_path / "squares.py"
    path.write_text(WRONG.format(factor=3))
    assert gradlint(tmp_path, "replay").returncode == 5
    gradlint(tmp_path, "check", "squares.py", "--select", "GL401", "--seed", "9")
    kept = json.loads((tmp_path / CACHE / "failed_checks.json").read_text())["checks"]
    assert [(item["code"], item["settings"]["seed"]) for item in kept] == [("GL401", 9)]
    name = kept[0]["id"]
    listed = gradlint(tmp_path, "replay", "--list")
    assert listed.stdout.startswith(f"{name}  GL401  squares.py:Square: wrong gradient for `x`")
    there = gradlint(tmp_path, "replay", name[:5])
    assert (there.returncode, there.stdout[:11]) == (1, "still there")
    path.write_text(WRONG.format(factor=2))
    mended = gradlint(tmp_path, "replay")
    assert (mended.returncode, mended.stdout[:6]) == (0, "mended")
    path.write_text("x = (")
    broken = gradlint(tmp_path, "replay")
    assert (broken.returncode, broken.stdout[:9]) == (1, "not known")

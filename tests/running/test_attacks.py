"""Attacks on the verdict, and on what lies around: none succeeds, or `--untrusted` stops it.

The attacks on the channel between worker and parent are in test_forging.py, those that end the
worker in test_hostile.py. gradlint/docs/threat-model.md lists all of them.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.model.report import TargetReport
from gradlint.model.settings import Settings
from gradlint.report.render import render
from gradlint.running.run import Run, execute

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the attacks use /proc")

SETTINGS = Settings(select=("GL0", "GL401"), seed=1, timeout=30.0, jobs=2)

NOT_GREEN = ("fail", "error", "inconclusive")

#: attack → code of the finding that must be there, what it says.
STOPPED = {
    "PatchedGradcheck": ("GL401", "wrong gradient"),
    "PatchedRandn": ("GL401", "wrong gradient"),
    "PatchedAllclose": ("GL401", "wrong gradient"),
    "PatchedAdd": ("GL008", "torch.Tensor.__add__"),
    "PatchedSubtraction": ("GL008", "torch.Tensor.__sub__"),
    "PatchedGrad": ("GL008", "torch.autograd.grad"),
    "PatchedEngine": ("GL008", "torch.autograd._engine_run_backward"),
    "PatchedApply": ("GL008", "Function.apply"),
    "PatchedExamine": ("GL008", "gradlint.checking.examine.examine"),
    "PatchedOutcome": ("GL008", "gradlint.model.rule.Outcome.__init__"),
    "PatchedSeverity": ("GL008", "gradlint.checking.severity.decided"),
    "PatchedNumerics": ("GL008", "gradlint.numerics.judge.verdict"),
    "PatchedCode": ("GL008", "gradlint.numerics.verdict.verdict"),
    "PatchedConstants": ("GL008", "TOLERATED"),
    "PatchedCatalogue": ("GL008", "gradlint.model.rule.Rule.probe"),
    "PatchedFinding": ("GL008", "gradlint.model.report.Finding.__init__"),
    "PatchedEmit": ("GL008", "gradlint.running._worker.Channel.send"),
    "SearchedKey": ("GL005", "interfered with what its worker reports"),
    "Traced": ("GL401", "wrong gradient"),
    "Profiled": ("GL401", "wrong gradient"),
    "Monitored": ("GL401", "wrong gradient"),
    "PatchedLater": ("GL008", "gradlint.model.rule.Outcome.__init__"),
    "PatchedByASignal": ("GL008", "gradlint.model.rule.Outcome.__init__"),
    "AtExit": ("GL005", "sys.exit(0)"),
    "ForkAndImpersonate": ("GL005", "which is not the worker"),
    "ChangedNumber": ("GL005", "crashed"),
    "ChangedMemory": ("GL401", "wrong gradient"),
    "LyingSubclass": ("GL401", "wrong gradient"),
    "LyingOutput": ("GL401", "wrong gradient"),
    "OverriddenKernel": ("GL008", "aten::sub.Tensor"),
    "HiddenBuiltins": ("GL008", "gradlint.numerics._common_draws.abs"),
    "PatchedBuiltins": ("GL008", "builtins.any"),
    "PatchedMath": ("GL008", "math.sqrt"),
    "AddedMethod": ("GL008", "gradlint.numerics.decide.Decision.__getattribute__"),
    "HookedLeaves": ("GL008", "torch.Tensor.requires_grad_"),
    "PatchedGradMode": ("GL008", "enable_grad.__enter__"),
    "OtherDevice": ("GL401", "wrong gradient"),
    "LoweredLimits": ("GL008", "limit of open files"),
    "EnteredModes": ("GL401", "wrong gradient"),
    "HookedImports": ("GL401", "wrong gradient"),
    "OtherDefaults": ("GL401", "wrong gradient"),
    "CachedByArguments": ("GL401", "wrong gradient"),
    "PatchedWatch": ("GL009", "right only while gradlint checks"),
    "RightByStack": ("GL009", "right only while gradlint checks"),
    "RightByModules": ("GL009", "right only while gradlint checks"),
    "RightByName": ("GL009", "right only while gradlint checks"),
    "RightByEnvironment": ("GL009", "right only while gradlint checks"),
    "RightByParent": ("GL009", "right only while gradlint checks"),
    "RightOnOneThread": ("GL009", "right only while gradlint checks"),
}

#: What no run of today tells from a right operator; the threat model says so.
NOT_PROMISED = ("RightForAMinute", "RightByDate", "RightAtFirst", "RightBySeed")


def _names(file: str) -> list[str]:
    """The operators of a file of attacks."""
    tree = ast.parse((HERE / file).read_text())
    return [
        node.name
        for node in tree.body
        if (isinstance(node, ast.ClassDef) and any(map(_is_function, node.bases)))
        or (isinstance(node, ast.FunctionDef) and node.decorator_list)
        if not node.name.startswith("_")
    ]


def _is_function(base: ast.expr) -> bool:
    return ast.unparse(base) in ("_Wrong", "_Double", "torch.autograd.Function")


def _by_name(run: Run) -> dict[str, TargetReport]:
    assert (run.usage, run.internal) == ([], [])
    return {report.target.rpartition(":")[2]: report for report in run.report.targets}


# -- the verdict -----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def reports() -> dict[str, TargetReport]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        targets = [f"attacks.py:{name}" for name in _names("attacks.py")]
        return _by_name(execute([*targets, "victim.py:Victim"], SETTINGS))


def test_each_attack_is_in_a_table() -> None:
    known = [*STOPPED, *NOT_PROMISED, "RightInFloat64", "RightWhenSmall"]
    assert sorted(_names("attacks.py")) == sorted(known)
    forging, hostile = _names("forging.py"), _names("hostile.py")
    others = [*_names("outward.py"), *_names("telling.py"), *forging]
    assert len(STOPPED) + len(others) >= 70
    assert len(hostile) >= 20


def test_the_threat_model_lists_them() -> None:
    page = (HERE.parents[1] / "gradlint" / "docs" / "threat-model.md").read_text()
    listed = set(
        re.findall(r"`([A-Z][a-z]+[A-Z]\w+|[A-Z][a-z]{4,})`", page.partition("## Attacks")[2])
    )
    made = {n for file in ("attacks.py", "outward.py", "telling.py") for n in _names(file)}
    assert listed == made - {"RightInFloat64"}


@pytest.mark.parametrize("name", STOPPED)
def test_stopped(reports: dict[str, TargetReport], name: str) -> None:
    code, words = STOPPED[name]
    report = reports[name]
    assert report.verdict in ("fail", "error")
    found = [finding for finding in report.findings if finding.code == code]
    assert found, [(finding.code, finding.message) for finding in report.findings]
    assert any(words in item.message + str(item.evidence.get("changes", "")) for item in found)
    assert "error" in {finding.severity for finding in found}


def test_larger_sizes_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    run = execute(["attacks.py:RightWhenSmall"], replace(SETTINGS, select=("GL706",)))
    assert _by_name(run)["RightWhenSmall"].verdict == "fail"


def test_a_dtype_that_was_not_asked_for_is_not_promised(
    reports: dict[str, TargetReport],
) -> None:
    """The report says what it is about."""
    report = reports["RightInFloat64"]
    assert report.verdict == "pass"
    assert {arg.dtype for sample in report.samples for arg in sample.args} == {"float64"}


@pytest.mark.parametrize("name", NOT_PROMISED)
def test_what_does_not_happen_during_a_check_is_not_promised(
    reports: dict[str, TargetReport], name: str
) -> None:
    assert reports[name].verdict == "pass"


def test_neighbours_are_unaffected(reports: dict[str, TargetReport]) -> None:
    assert reports["Victim"].findings == []
    assert reports["Victim"].verdict == "pass"


# -- what lies around ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the operators and what they are after."""
    folder = tmp_path_factory.mktemp("outside")
    for name in ("outward.py", "victim.py"):
        shutil.copy(HERE / name, folder / name)
    (folder / "report.json").write_text("the report of an earlier run")
    (folder / "pyproject.toml").write_text("[tool.gradlint]\n")
    return folder


@pytest.fixture(scope="module")
def confined(outside: Path) -> Iterator[dict[str, TargetReport]]:
    before = _contents(outside)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(outside)
        targets = [f"outward.py:{name}" for name in _names("outward.py")]
        settings = Settings(untrusted=True, select=("GL003", "GL401"), seed=1, timeout=30.0, jobs=2)
        run = execute([*targets, "victim.py:Victim"], settings)
        if run.usage and "can't be confined" in str(run.usage[0]):
            pytest.skip(str(run.usage[0]))
        yield _by_name(run)
    assert _contents(outside) == before


def _contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", _names("outward.py"))
def test_confined(confined: dict[str, TargetReport], outside: Path, name: str) -> None:
    verdict, code = ("error", "GL005") if name == "FillsSockets" else ("fail", "GL401")
    assert confined[name].verdict == verdict
    assert confined[name].findings[0].code == code
    assert not (outside / "opened").exists()


def test_neighbours_of_the_confined_are_unaffected(confined: dict[str, TargetReport]) -> None:
    assert confined["Victim"].verdict == "pass"


# -- texts -----------------------------------------------------------------------------------------
#: operator → code of its finding.
TELLING = {
    "ControlsInAnException": "GL003",
    "ControlsInTheNameOfAnException": "GL003",
    "ControlsInPrint": "GL005",
    "ControlsInLabels": "GL401",
    "Formula": "GL401",
    "NameThatRuns": "GL401",
    "UnspeakableLabel": "GL005",
    "Verdict": "GL401",
    "InAModuleWithEverything": "GL401",
}


@pytest.fixture(scope="module")
def told() -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        return execute([f"telling.py:{name}" for name in _names("telling.py")], SETTINGS)


@pytest.mark.parametrize("name", TELLING)
def test_texts_change_no_verdict(told: Run, name: str) -> None:
    report = _by_name(told)[name]
    assert report.verdict in ("fail", "error")
    assert [finding.code for finding in report.findings] == [TELLING[name]]
    assert not (HERE / "pwned").exists()


@pytest.mark.parametrize("format", ["full", "concise", "json"])
def test_texts_reach_no_terminal(told: Run, format: str) -> None:
    printed = render(told.report, format, width=80, verbose=2)
    assert "all passed" in printed
    assert [mark for mark in "\x1b\x07\x9b\r\u202e" if mark in printed] == []


@pytest.mark.parametrize("name", ["IgnoredInAComment", "IgnoredByItself"])
def test_ignores_of_untrusted_code_do_not_count(
    told: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A comment of the author's accepts a finding, and is shown; not with ``--untrusted``."""
    (check,) = [check for check in _by_name(told)[name].checks if check.code == "GL401"]
    assert check.verdict == "skipped"
    assert "it is meant to be so" in check.note
    monkeypatch.chdir(HERE)
    settings = Settings(untrusted=True, select=("GL401",), seed=1, timeout=30.0)
    run = execute([f"telling.py:{name}"], settings)
    if run.usage:
        pytest.skip(str(run.usage[0]))
    assert [f.code for f in _by_name(run)[name].findings] == ["GL401"]

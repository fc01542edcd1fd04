"""``gradlint report``, and what ``check`` and it share: which reports are written, and where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gradlint.cli import report as _report
from gradlint.model.report import Check, Finding, Location, Report, TargetReport
from gradlint.report import github
from gradlint.report.render import FORMATS, render
from gradlint.running.spool import Spool
from tests.benchmarks.report_load import report_of
from tests.conftest import Command


def passing(name: str, position: int) -> TargetReport:
    checks = [Check("GL401", "pass", "spec", 1e-9)]
    return TargetReport(f"ops.py:{name}", "function", "pass", checks=checks, position=[position])


def failing(name: str, position: int) -> TargetReport:
    finding = Finding(
        "GL401",
        "wrong_gradient",
        "warning",
        "wrong gradient for `x`",
        location=Location("ops.py", 7),
    )
    target = passing(name, position)
    return replace(target, verdict="fail", findings=[finding], location=Location("ops.py", 3))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards of a run in which one operator fails, as json and as jsonl."""
    whole = Report(seed=5, gradlint="0.1.0", settings={"order": 2})
    first = replace(whole, targets=[passing("a", 0), passing("c", 2)], shard="1/2")
    second = replace(whole, targets=[failing("b", 1)], shard="2/2")
    (tmp_path / "1.json").write_text(render(first, "json"))
    (tmp_path / "2.jsonl").write_text(render(second, "jsonl"))
    every = replace(whole, targets=[passing("a", 0), failing("b", 1), passing("c", 2)])
    (tmp_path / "whole.json").write_text(render(every, "json"))
    return tmp_path


@pytest.mark.parametrize("format", FORMATS)
def test_shards_read_as_one_run(shards: Path, gradlint: Command, format: str) -> None:
    merged = gradlint(shards, "report", "2.jsonl", "1.json", "--output-format", format)
    whole = gradlint(shards, "report", "whole.json", "--output-format", format)
    assert merged.stdout == whole.stdout
    assert "wrong gradient for" in merged.stdout
    assert (merged.returncode, merged.stderr) == (1, "")
    assert whole.returncode == 1


@pytest.mark.parametrize("format", ["json", "full"])
@pytest.mark.parametrize("large", [1, 2**40])
def test_large_files_read_the_same(
    shards: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    format: str,
    large: int,
) -> None:
    """Where the files are large, no result is held in memory."""
    usual, kept = Spool.keep, []
    monkeypatch.setattr(Spool, "keep", lambda spool, one: kept.append(one) or usual(spool, one))
    monkeypatch.setattr(_report, "LARGE_BYTES", large)
    monkeypatch.chdir(shards)
    names = ["2.jsonl", "1.json"]
    assert _report.report(names, output_format=format, output="merged") == 1
    assert [target.target[-1] for target in kept] == (list("bacabc") if large == 1 else [])
    assert _report.report(["whole.json"], output_format=format, output="one") == 1
    assert (shards / "merged").read_text() == (shards / "one").read_text()
    assert "wrong gradient for" in (shards / "merged").read_text()
    assert capsys.readouterr().err == ""


def test_the_exit_code_is_that_of_the_merged_run(shards: Path, gradlint: Command) -> None:
    words = ("report", "1.json", "2.jsonl", "-q")
    assert gradlint(shards, *words).returncode == 1
    assert gradlint(shards, *words, "--fail-on", "error").returncode == 0
    assert gradlint(shards, "report", "1.json", "-q").returncode == 0
    done = gradlint(shards, *words, "--fail-on", "eror")
    assert done.returncode == 2
    assert "did you mean `error`?" in done.stderr


def test_files_that_make_no_run(shards: Path, gradlint: Command) -> None:
    other = json.loads((shards / "1.json").read_text())
    other["seed"], other["shard"] = 6, "2/2"
    (shards / "other.json").write_text(json.dumps(other))
    whole = (shards / "1.json").read_text()
    (shards / "cut.json").write_text(whole[: len(whole) // 2])
    for words, message in {
        (): "report: no file given\n",
        (
            "1.json",
            "other.json",
        ): "other.json: is not of the same run as 1.json: seed 6 instead of 5\n",
        ("1.json", "cut.json"): "cut.json: is cut off",
        ("1.json", "1.json"): "1.json: ops.py:a is in 1.json, too\n",
        ("absent.json",): "absent.json: can't be read: No such file or directory\n",
        ("1.json", "--report", "html"): "--report: expected FORMAT=PATH, got 'html'\n",
        ("1.json", "--report", "hmtl=a"): "--report: 'hmtl' is not one of full, concise",
        ("1.json", "-o", "no/a.txt"): "-o: no/a.txt: there is no folder",
        ("1.json", "--report", "json=a", "--report", "html=a"): "--report: a: another report is",
    }.items():
        done = gradlint(shards, "report", *words)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"error: {message}")
    assert not (shards / "a").exists()


def test_what_can_not_be_written_is_said_before_anything_is_read(
    shards: Path, gradlint: Command
) -> None:
    done = gradlint(shards, "report", "absent.json", "--report", "sarif=no/such/folder.sarif")
    assert "there is no folder" in done.stderr
    assert "absent.json" not in done.stderr


def test_a_report_is_written_whole_or_not_at_all(
    shards: Path, gradlint: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shards / "old.md").write_text("old")

    def breaks(*_: object) -> object:
        yield "half"
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(sys.modules["gradlint.report.render"]._WRITERS, "markdown", breaks)
    words = ("--report", "markdown=old.md", "--report", "json=new.json")
    done = gradlint(shards, "report", "1.json", "-q", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: old.md: can't be written: No space left on device")
    assert (shards / "old.md").read_text() == "old"
    assert json.loads((shards / "new.json").read_text())["seed"] == 5
    assert sorted(path.name for path in shards.iterdir() if "tmp" in path.name) == []


def test_many_reports_in_files_with_odd_names(shards: Path, gradlint: Command) -> None:
    names = {format: f"a b=c:{format}\n\x1b é" for format in FORMATS}
    extra = [word for f, name in names.items() for word in ("--report", f"{f}={name}")]
    done = gradlint(shards, "report", "1.json", "2.jsonl", "-o", "first.txt", *extra)
    assert done.returncode == 1
    assert (done.stdout, done.stderr) == ("", "")
    for format, name in names.items():
        assert "wrong gradient for" in (shards / name).read_text(), format


def test_no_torch_is_imported(shards: Path) -> None:
    for format in FORMATS:
        code = (
            "import sys; from gradlint.cli.entry import main; "
            f"main(['report', '1.json', '2.jsonl', '--output-format', {format!r}, '-o', 'out']); "
            "print([name for name in ('torch', 'numpy', 'matplotlib') if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=shards, check=True
        )
        assert done.stdout == "[]\n"


# -- GitHub ----------------------------------------------------------------------------------------


def test_the_summary_of_a_step(shards: Path, gradlint: Command) -> None:
    summary = shards / "summary.md"
    summary.write_text("before\n")
    words = ("report", "1.json", "2.jsonl", "--output-format", "github")
    done = gradlint(shards, *words, GITHUB_STEP_SUMMARY=str(summary))
    assert done.stdout.splitlines()[0] == (
        "::warning file=ops.py,line=7,col=1,title=GL401 wrong gradient::wrong gradient for `x`"
        "%0Aoperator: ops.py:b"
    )
    text = summary.read_text()
    assert text.startswith("before\n# gradlint\n\n1 of 3 operators fails, 2 pass.")
    assert "### warning: GL401 wrong gradient" in text
    assert gradlint(shards, *words).returncode == 1
    assert summary.read_text() == text  # outside of a step, and in other formats, nothing is added
    gradlint(shards, "report", "1.json", GITHUB_STEP_SUMMARY=str(summary))
    assert summary.read_text() == text


def test_a_summary_that_can_not_be_written(shards: Path, gradlint: Command) -> None:
    done = gradlint(
        shards, "report", "1.json", "--output-format", "github", GITHUB_STEP_SUMMARY=str(shards)
    )
    assert done.returncode == 2
    assert "GITHUB_STEP_SUMMARY" in done.stderr


def test_a_summary_is_at_most_a_mebibyte() -> None:
    report = report_of(3_000, 3)
    whole = github.step_summary(report)
    assert github.SUMMARY_BYTES - 5_000 < len(whole) <= github.SUMMARY_BYTES
    assert whole.endswith(
        b"The rest is left out: GitHub shows no more. The JSON report has all of it.\n"
    )
    assert len(github.step_summary(report, 2_000)) <= 2_000
    assert github.step_summary(report, 100) == b""
    assert github.step_summary(report, -5) == b""


def test_paths_are_those_of_the_checkout(shards: Path, gradlint: Command) -> None:
    below = shards / "below"
    below.mkdir()
    os.rename(shards / "2.jsonl", below / "2.jsonl")
    words = ("report", "2.jsonl", "--output-format")
    done = gradlint(below, *words, "github", GITHUB_WORKSPACE=str(shards))
    assert "file=below/ops.py," in done.stdout
    done = gradlint(below, *words, "gitlab", CI_PROJECT_DIR=str(shards))
    assert json.loads(done.stdout)[0]["location"]["path"] == "below/ops.py"
    done = gradlint(below, *words, "gitlab", CI_PROJECT_DIR=str(below / "elsewhere"))
    assert json.loads(done.stdout)[0]["location"]["path"] == "ops.py"


# -- a run and its shards --------------------------------------------------------------------------

_OPERATORS = """
import torch

class Base(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def sample_inputs():
        return (torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True),)
"""
_WRONG = """
class Wrong(Base):
    @staticmethod
    def backward(ctx, g):
        return g * 3
"""


#: What two runs of one operator need not have in common: times, calls that were timed again, and
#: the seed of a confirmation.
_OF_ONE_RUN = ("duration_s", "forward_calls", "backward_calls", "confirmation")


def _in_common(value: object) -> object:
    if isinstance(value, dict):
        return {key: _in_common(item) for key, item in value.items() if key not in _OF_ONE_RUN}
    return [_in_common(item) for item in value] if isinstance(value, list) else value


def test_the_shards_of_a_run_merge_to_the_report_of_one(tmp_path: Path, gradlint: Command) -> None:
    more = "".join(f"\nclass Right{n}(Base):\n    pass\n" for n in range(4))
    (tmp_path / "b.py").write_text(_OPERATORS + _WRONG + more)
    (tmp_path / "a.py").write_text(_OPERATORS)
    (tmp_path / "empty.py").write_text("import torch\n")
    words = ("check", ".", "--seed", "3", "--select", "GL401,GL003", "-q")
    codes = [
        gradlint(tmp_path, *words, "--report", f"json={name}.json", *shard).returncode
        for name, *shard in (("whole",), ("1", "--shard", "1/2"), ("2", "--shard", "2/2"))
    ]
    assert sorted(codes) == [0, 1, 1]
    done = gradlint(tmp_path, "report", "2.json", "1.json", "--output-format", "json")
    assert done.returncode == 1
    whole = json.loads((tmp_path / "whole.json").read_text())
    merged = json.loads(done.stdout)
    assert len(merged["targets"]) == 7
    assert _in_common(merged) == _in_common(whole)


def test_a_mistake_is_annotated(tmp_path: Path, gradlint: Command) -> None:
    done = gradlint(tmp_path, "check", "absent.py:Op", "--output-format", "github")
    assert done.returncode == 2
    assert done.stdout.startswith("::error title=gradlint::")
    assert "absent.py" in done.stdout.splitlines()[0]
    assert done.stderr.startswith("error: ")

"""``gradlint.Checker``: texts, paths and objects, as they come, with limits."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.checker import Checker
from gradlint.model.report import Brief, Check, Finding, Report, TargetReport
from gradlint.running.runners import Runner, RunnerLost, close_runners
from tests.running.test_cluster import without_times

ROOT = str(Path(__file__).parents[1])

RIGHT = """
import torch

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2
"""
WRONG = RIGHT.replace("grad_output * 2", "grad_output * 3")


@pytest.fixture
def checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checker]:
    monkeypatch.chdir(tmp_path)
    with Checker(jobs=2, select="GL401", seed=1) as made:
        yield made
    close_runners()


def test_texts_and_paths(checker: Checker, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(RIGHT + WRONG.replace("Op(", "Other("))
    (tmp_path / "helper.py").write_text("K = 2\n")
    hanging = RIGHT.replace("return grad_output * 2", "[x for x in iter(int, 1)]")
    importing = RIGHT.replace("import torch", "import torch\nfrom helper import K")
    futures = {
        "right": checker.submit(RIGHT, "randn(3)"),
        "wrong": checker.submit(WRONG),
        "file": checker.submit("ops.py"),
        "hangs": checker.submit(hanging, time_limit=4),
        "imports": checker.submit(importing),
        "broken": checker.submit("import torch\nclass Op(torch.autograd.Function:\n"),
    }
    assert set(checker.as_completed(futures.values())) == set(futures.values())
    briefs = {name: future.result().brief for name, future in futures.items()}
    assert briefs["right"].ok
    assert briefs["right"].resolution is not None
    assert briefs["right"].resolution < 1e-6
    assert (briefs["wrong"].ok, briefs["wrong"].code) == (False, "GL401")
    assert briefs["wrong"].cause == "scaled"
    assert [t.verdict for t in futures["file"].result().targets] == ["pass", "fail"]
    assert not briefs["hangs"].ok
    assert "longer than its item may" in futures["hangs"].result().targets[0].notes[0]
    assert briefs["imports"].ok
    assert (briefs["broken"].ok, briefs["broken"].code) == (False, "GL001")
    # A text is named by its content, and by no folder.
    [finding] = futures["wrong"].result().findings
    assert finding.location is not None
    assert finding.location.file.startswith("op_")
    assert str(tmp_path.parent) not in str(futures["wrong"].result())


def test_what_is_no_target(checker: Checker) -> None:
    class Local:
        pass

    for op in ("nowhere.py", Local, Local(), lambda x: x):
        with pytest.raises(GradlintError):
            checker.submit(op)


def test_the_program_imports_no_torch(tmp_path: Path) -> None:
    program = f"""
        import sys, gradlint
        if __name__ == "__main__":
            with gradlint.Checker(jobs=1, select="GL401", seed=1) as checker:
                report = checker.submit({WRONG!r}).result()
            print(report.brief.code, report.brief.cause, "torch" in sys.modules)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ROOT, "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.stdout.split() == ["GL401", "scaled", "False"], done.stderr


class Elsewhere(Executor):
    """Calls at once, or fails as an executor of someone else's may."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def submit(self, fn: Any, /, *args: Any, **kw: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(fn(*args, **kw))
        return future


def test_another_executor(checker: Checker, tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(WRONG)
    with Checker(executor=Elsewhere(), select="GL401", seed=1, jobs=2) as other:
        there = other.submit("ops.py").result()
    here = checker.submit("ops.py").result()
    assert without_times(there) == without_times(here)
    with Checker(executor=Elsewhere(ValueError("x")), seed=1) as broken:
        assert isinstance(broken.submit("ops.py").exception(), ValueError)
    with Checker(executor=Elsewhere(RunnerLost("it ended")), seed=1) as broken:
        report = broken.submit("ops.py").result()
    assert not report.ok
    assert report.exit_code == 3


def test_a_runner_that_is_killed_says_so(tmp_path: Path) -> None:
    runner = Runner(str(tmp_path), 1)
    runner._process.kill()
    runner._process.wait()
    with pytest.raises(RunnerLost):
        runner.submit(b"x").result(30)
    assert not runner.alive
    runner.close()


def test_what_is_no_item_is_answered(tmp_path: Path) -> None:
    runner = Runner(str(tmp_path), 1)
    assert b"no Item" in runner.submit(b"nonsense").result(60)
    runner.close()


def test_brief() -> None:
    mild = Finding("GL503", "n", "info", "m")
    bad = Finding("GL401", "n", "error", "m", cause="sign")
    after = Finding("GL501", "n", "error", "m", follows="GL401")
    checks = [Check("GL401", "pass", resolution=1e-9), Check("GL501", "pass", resolution=1e-5)]
    checks.append(Check("GL801", "inconclusive", resolution=1.0))
    passing = Report([TargetReport("x", verdict="pass", findings=[mild], checks=checks)])
    assert passing.brief == Brief(True, "GL503", None, 1e-5)
    failing = Report([TargetReport("x", verdict="fail", findings=[mild, after, bad])])
    assert failing.brief == Brief(False, "GL401", "sign", None)
    assert Report().brief == Brief(False)

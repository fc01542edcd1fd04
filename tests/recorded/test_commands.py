"""Whole programs as users start them: a package, a test suite, and one file of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gradlint.spec.load import load
from tests.conftest import Command

FUNCTION = """\


class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {arguments}):
        {keep}
        return {value}

    @staticmethod
    def backward(ctx, grad):
        return {gradient}
"""


def function(name: str, arguments: str, keep: str, value: str, gradient: str) -> str:
    return FUNCTION.format(
        name=name, arguments=arguments, keep=keep, value=value, gradient=gradient
    )


OPS = "import torch\n" + "".join(
    (
        function(
            "Right", "x", "ctx.save_for_backward(x)", "x * x", "2 * ctx.saved_tensors[0] * grad"
        ),
        function(
            "Wrong", "x, scale", "ctx.scale = scale", "x * scale", "grad * ctx.scale * 2, None"
        ),
    )
)

MAIN = (
    "import torch\n\nfrom .ops import Right, Wrong\n"
    + function(
        "Here", "x", "ctx.save_for_backward(x)", "x.exp()", "ctx.saved_tensors[0].exp() * grad"
    )
    + """\


x = torch.randn(20, 12, requires_grad=True)
Right.apply(x).sum().backward()
Wrong.apply(x, 2.5).sum().backward()
if __name__ == "__main__":
    Here.apply(x).sum().backward()
"""
)

TESTS = (
    "import pytest\nimport torch\n\nfrom pkg.ops import Right, Wrong\n"
    + function("Local", "x", "pass", "x + 1", "grad.clone()")
    + """\


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_wrong(scale):
    x = torch.randn(9, 11, requires_grad=True)
    Wrong.apply(x, scale).sum().backward()
    assert x.grad.shape == x.shape


def test_right():
    x = torch.randn(9, 11, requires_grad=True)
    Local.apply(Right.apply(x)).sum().backward()


def test_that_fails():
    assert Right.apply(torch.ones(2)).sum() == 3
"""
)

OTHER = """\
import torch

from pkg.ops import Right


def test_right():
    Right.apply(torch.ones(2, 2, 2, requires_grad=True))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a main module and tests; python and pytest are those of this process."""
    for name, text in {
        "pkg/__init__.py": "",
        "pkg/ops.py": OPS,
        "pkg/__main__.py": MAIN,
        "conftest.py": "",
        "tests/test_ops.py": TESTS,
        "tests/test_other.py": OTHER,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    bin_folder = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", bin_folder + os.pathsep + os.environ["PATH"])
    for name in ("PYTHONPATH", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def ops_of(folder: Path) -> dict[str, str | None]:
    """Name of a spec → the operator that it is of."""
    return {path.stem: load(str(path)).op for path in sorted(folder.glob("*.yaml"))}


def judged(gradlint: Command, project: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Name of a spec → what ``gradlint check`` reports of it; ``Wrong`` alone fails."""
    select = ("--select", "GL0,GL1,GL401", "--seed", "0")
    done = gradlint(project, "check", *words, *select, "--report", "json=report.json")
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads((project / "report.json").read_text())
    found = {Path(target["target"]).stem: target for target in report["targets"]}
    assert {name for name, target in found.items() if target["verdict"] != "pass"} == {"Wrong"}
    (finding,) = found["Wrong"]["findings"]
    assert (finding["code"], finding["cause"]) == ("GL401", "scaled")
    assert finding["location"]["file"] == "pkg/ops.py"
    return found


def test_a_package_that_is_run(gradlint: Command, project: Path) -> None:
    before = sorted(path.name for path in project.iterdir())
    done = gradlint(project, "record", "-o", "specs", "--seed", "0", "--", "python", "-m", "pkg")
    assert done.returncode == 0, done.stderr
    assert "3 operators in 3 calls and 1 process: 3 specs in specs" in done.stderr
    assert ops_of(project / "specs") == {
        "Here": "../pkg/__main__.py:Here",
        "Right": "../pkg/ops.py:Right",
        "Wrong": "../pkg/ops.py:Wrong",
    }
    assert sorted(path.name for path in project.iterdir()) == sorted([*before, "specs"])
    judged(gradlint, project, "specs")


def test_a_test_suite(gradlint: Command, project: Path) -> None:
    words = ("-o", "specs", "--seed", "0", "--", "pytest", "-q", "-p", "no:cacheprovider")
    done = gradlint(project, "record", *words, "tests/")
    assert done.returncode == 1  # as the test suite
    assert "the program ended with exit code 1" in done.stderr
    assert "3 operators in 6 calls and 1 process: 3 specs in specs" in done.stderr
    assert ops_of(project / "specs") == {
        "Local": "../tests/test_ops.py:Local",
        "Right": "../pkg/ops.py:Right",
        "Wrong": "../pkg/ops.py:Wrong",
    }
    right = judged(gradlint, project, "specs")["Right"]
    # Both ranks that the tests use, those without a gradient too.
    assert {len(sample["args"][0]["shape"]) for sample in right["samples"]} >= {2, 3}


def test_one_file_of_a_test_suite_is_checked(gradlint: Command, project: Path) -> None:
    found = judged(gradlint, project, "--from", "pytest -q tests/test_ops.py")
    assert sorted(found) == ["Local", "Right", "Wrong"]
    ranks = {len(sample["args"][0]["shape"]) for sample in found["Right"]["samples"]}
    assert 3 not in ranks  # which the other file uses
    assert found["Local"]["target"] == ".gradlint_cache/recorded/Local.yaml"


def test_a_test_suite_that_collects_nothing(gradlint: Command, project: Path) -> None:
    (project / "pkg" / "ops.py").write_text("raise RuntimeError('broken')\n")
    done = gradlint(project, "check", "--from", "pytest -q tests/test_ops.py", "--seed", "0")
    assert done.returncode == 5
    assert "the program ended with exit code 2" in done.stderr
    assert "Traceback" not in done.stderr

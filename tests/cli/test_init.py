"""``gradlint init``: the starter spec checks what the operator itself does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gradlint.cli.entry import main
from gradlint.spec.load import load

MODULE = """\
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None, scale=2.0):
        ctx.save_for_backward(input, weight)
        ctx.scale = scale
        out = scale * (input @ weight.t())
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        input, weight = ctx.saved_tensors
        bias = grad.sum(0) if ctx.needs_input_grad[2] else None
        return ctx.scale * grad @ weight, ctx.scale * grad.t() @ input, bias, None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linear_ops.py").write_text(MODULE)
    return tmp_path


def check(target: str) -> dict[str, Any]:
    """The report of ``target``."""
    main(["check", target, "--seed", "3", "--output-format", "json", "-o", "report.json"])
    (report,) = json.loads(Path("report.json").read_text())["targets"]
    return report


def test_a_spec_that_checks_identically(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "linear_ops.py:Linear"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "wrote Linear.yaml; next: gradlint check Linear.yaml\n"
    spec = load("Linear.yaml")
    assert spec.op == "linear_ops.py:Linear"
    assert set(spec.inputs) >= {"input", "weight"}
    first, second = check("linear_ops.py:Linear"), check("Linear.yaml")
    assert first["verdict"] == second["verdict"] == "pass"
    shown = [
        [
            [(arg["name"], arg["shape"], arg["dtype"], arg["requires_grad"], arg["value"])
             for arg in sample["args"]]
            for sample in report["samples"]
        ]
        for report in (first, second)
    ]  # fmt: skip
    assert shown[0] == shown[1]
    codes = [[(item["code"], item["verdict"]) for item in r["checks"]] for r in (first, second)]
    assert codes[0] == codes[1]


def test_a_module_of_the_current_folder_is_found_from_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, other = folder / "shapes", folder / "specs"
    package.mkdir()
    other.mkdir()
    (package / "__init__.py").touch()
    (package / "linear.py").write_text(MODULE)
    assert main(["init", "shapes.linear:Linear", "-o", "specs/linear.yaml"]) == 0
    assert load("specs/linear.yaml").op == "../shapes/linear.py:Linear"
    monkeypatch.chdir(other)
    assert check("linear.yaml")["verdict"] == "pass"


def test_an_installed_module_keeps_its_name(folder: Path) -> None:
    assert main(["init", "torch.nn.functional:relu", "-o", "relu.yaml"]) == 0
    assert load("relu.yaml").op == "torch.nn.functional:relu"


def test_to_the_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "linear_ops.py:Linear", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("# yaml-language-server: $schema=")


def test_a_file_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "Linear.yaml").write_text("mine")
    assert main(["init", "linear_ops.py:Linear"]) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert (folder / "Linear.yaml").read_text() == "mine"
    assert main(["init", "linear_ops.py:Linear", "--force"]) == 0
    assert "op:" in (folder / "Linear.yaml").read_text()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("spec.yaml", "is already a spec"),
        ("linear_ops.py:Liner", "Linear"),
        ("nosuch_module_here:X", "nosuch_module_here"),
    ],
)
def test_mistakes(
    folder: Path, target: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", target, "-o", "out.yaml"]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out.yaml").exists()

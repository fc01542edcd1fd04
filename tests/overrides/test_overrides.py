"""Audits of classes that define ``__torch_function__``: in this process, and as a command."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint.cli.entry import main
from gradlint.model.settings import Settings
from gradlint.overrides._signatures import signature_findings
from gradlint.overrides.audit import audit
from gradlint.report.overrides import failing, render_overrides
from gradlint.targets.resolve import resolve

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tensor_like"


@cache
def audited(target: str) -> dict[str, Any]:
    """The audit, made once, which leaves the generators as they were."""
    settings = Settings(seed=1)
    (ref,) = resolve(target, settings)
    before = torch.get_rng_state()
    found = audit(ref, settings)
    assert torch.equal(torch.get_rng_state(), before)
    return found


def kinds(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(item["function"], item["kind"]) for item in found["findings"]}


def test_right_wrapper() -> None:
    found = audited(f"{EXAMPLES}/diagonal.py:ScalarDiagonal")
    assert found["handled"] == ["torch.inverse", "torch.matmul", "torch.mean", "torch.trace"]
    assert found["passed_on"] == []
    assert len(found["refused"]) == found["overridable"] - 4
    assert found["tried"] == 4
    assert found["findings"] == []


def test_wrong_wrapper() -> None:
    found = audited(f"{EXAMPLES}/diagonal.py:WrongScalarDiagonal")
    assert found["handled"] == ["torch.add", "torch.matmul", "torch.mean"]
    assert kinds(found) == {
        ("torch.add", "other-values"),
        ("torch.matmul", "reordered-parameters"),
        ("torch.mean", "missing-parameter"),
        ("torch.mean", "wrong-type"),
    }


def test_right_subclass() -> None:
    found = audited(f"{EXAMPLES}/labelled.py:Labelled")
    assert found["findings"] == []
    assert len(found["passed_on"]) == found["overridable"]
    assert found["tried"] > 300


def test_wrong_subclass() -> None:
    found = audited(f"{EXAMPLES}/labelled.py:WrongLabelled")
    assert ("torch.sin", "type-lost") in kinds(found)
    assert {kind for _, kind in kinds(found)} == {"type-lost"}


@pytest.mark.parametrize(
    ("handler", "testing", "kind", "severity"),
    [
        (lambda input, other, out=None: 0, lambda input, other, out=None: 0, None, ""),
        (lambda *args, **kwargs: 0, lambda input, other, out=None: 0, None, ""),
        (lambda a, other, out=None: 0, lambda input, other, out=None: 0, "renamed", "info"),
        (lambda input, other: 0, lambda input, other, out=None: 0, "missing", "info"),
        (lambda input: 0, lambda input, dim=None: 0, "missing", "warning"),
        (lambda other, input: 0, lambda input, other: 0, "reordered", "error"),
        (lambda input, scale: 0, lambda input: 0, "extra", "error"),
        (float, lambda input: 0, None, ""),
    ],
)
def test_signatures(handler: Any, testing: Any, kind: str | None, severity: str) -> None:
    found = signature_findings(handler, testing)
    if kind is None:
        assert found == []
        return
    (one,) = found
    assert one["kind"].startswith(kind)
    assert one["severity"] == severity


SUBCLASSES = """\
import torch
from torch import Tensor


class Right(Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrong(Right):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.relu and bool((args[0].as_subclass(Tensor) == SPECIAL).any()):
            return args[0]
        if func is torch.sub and args[0].shape == args[1].shape:
            args = args[::-1]
        if func is torch.flatten and args[0].shape[0] != args[0].shape[1]:
            args = (args[0].as_subclass(Tensor).mT.as_subclass(cls),)
        return super().__torch_function__(func, types, args, kwargs or {})


SPECIAL = 7.0


class Drawn(Wrong):
    @staticmethod
    def sample_inputs():
        return torch.randint(5, 8, (3, 2)).double().as_subclass(Drawn)
"""


def test_random_instances_show_what_one_would_not(tmp_path: Path) -> None:
    """A swap shows between two instances, mixed axes where they are not square."""
    path = tmp_path / "subclasses.py"
    path.write_text(SUBCLASSES)
    assert audited(f"{path}:Right")["findings"] == []
    wrong = audited(f"{path}:Wrong")
    assert {f for f, _ in kinds(wrong)} == {"torch.sub", "torch.flatten"}
    assert {kind for _, kind in kinds(wrong)} == {"other-values"}
    assert (wrong["samples"], wrong["seed"]) == (3, 1)
    assert audited.__wrapped__(f"{path}:Wrong") == wrong
    drawn = audited(f"{path}:Drawn")
    assert {f for f, _ in kinds(drawn)} == {"torch.sub", "torch.flatten"}


def test_page_groups_what_is_said_of_many() -> None:
    found = audited(f"{EXAMPLES}/labelled.py:WrongLabelled")
    assert failing(found)
    page = render_overrides(found, width=72)
    assert page.count("type-lost") == 1
    assert max(map(len, page.splitlines())) <= 72
    concise = render_overrides(found, "concise").splitlines()
    assert len(concise) == len(found["findings"])
    assert json.loads(render_overrides(found, "json")) == found


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overrides", f"{EXAMPLES}/diagonal.py:ScalarDiagonal"]) == 0
    assert "0 findings." in capsys.readouterr().out
    target = f"{EXAMPLES}/diagonal.py:WrongScalarDiagonal"
    assert main(["overrides", target, "--output-format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["schema_version"] == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [("implements", "is not a class"), ("Handlers", "is not a class"), ("Absent", "Absent")],
)
def test_other_targets_are_usage_errors(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["overrides", f"{EXAMPLES}/diagonal.py:{name}"]) == 2
    assert text in capsys.readouterr().err


def test_class_without_override(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.py"
    path.write_text("import torch\nclass Plain(torch.Tensor):\n    pass\n")
    assert main(["overrides", f"{path}:Plain"]) == 2
    assert "__torch_function__" in capsys.readouterr().err


def test_crash_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crash.py"
    path.write_text("import os\nos._exit(3)\nclass Gone:\n    pass\n")
    assert main(["overrides", f"{path}:Gone"]) == 1
    assert "GL005" in capsys.readouterr().err

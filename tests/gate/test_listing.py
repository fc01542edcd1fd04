"""``gradlint list``: what would run, with which inputs, and why something is left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.rules.catalogue import CATALOGUE

Command = Callable[..., Any]

OPS = """
import torch

class Given(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
    @staticmethod
    def sample_inputs():
        return (torch.ones(2, 3, dtype=torch.float64, requires_grad=True),)

class Inferred(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("no rule runs, so nobody sees this")
"""

BROKEN = """
import torch
import module_that_is_not_there

class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x
    @staticmethod
    def backward(ctx, grad):
        return grad
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ops.py").write_text(OPS)
    (tmp_path / "bro ken.py").write_text(BROKEN)
    (tmp_path / "plain.py").write_text("x = 1\n")
    return tmp_path


def listing(done: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_inputs_and_where_they_come_from(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "list", "ops.py", "--seed", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ops.py:Given  (function)  ops.py:4" in done.stdout
    assert "from sample_inputs: x float64[2, 3]" in done.stdout
    assert "2 operators would be checked.\n" in done.stdout
    # What is left out of all is said once.
    assert done.stdout.count("GL802 devices_disagree") == 1
    found = listing(gradlint(folder, "list", "ops.py", "--output-format", "json", "--seed", "3"))
    assert (found["schema_version"], found["seed"]) == (1, 3)
    assert [target["target"] for target in found["targets"]] == ["ops.py:Given", "ops.py:Inferred"]
    origins = [target["samples"][0]["origin"] for target in found["targets"]]
    assert origins == ["sample_inputs", "inferred"]
    assert found["targets"][0]["samples"][0]["args"][0]["shape"] == [2, 3]
    assert found["targets"][0]["location"]["line"] == 4
    codes = {rule.code for rule in CATALOGUE if rule.has_probe}
    for target in found["targets"]:
        out = {item["code"] for item in target["left_out"]}
        assert set(target["rules"]) | out == codes
        assert not set(target["rules"]) & out
        assert all(item["name"] and item["reason"] for item in target["left_out"])


def test_rules_that_are_left_out_say_why(folder: Path, gradlint: Command) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.gradlint.per-target-ignores]\n"ops.py" = ["GL604"]\n'
    )
    words = ("list", "ops.py:Given", "--order", "1", "--select", "GL5,GL6", "--ignore", "GL605")
    (target,) = listing(gradlint(folder, *words, "--output-format", "json"))["targets"]
    assert "GL401" not in target["rules"]
    assert "GL605" not in target["rules"]
    reasons = {item["code"]: item["reason"] for item in target["left_out"]}
    assert reasons == {
        "GL501": "second derivatives are left out by --order 1",
        "GL502": "second derivatives are left out by --order 1",
        "GL503": "second derivatives are left out by --order 1",
        "GL604": "ignored in pyproject.toml for ops.py",
    }
    assert "GL604 tensor_kept_on_ctx: ignored in pyproject.toml" in " ".join(
        gradlint(folder, *words).stdout.split()
    )


def test_dtypes_are_samples_of_their_own(folder: Path, gradlint: Command) -> None:
    words = ("list", "ops.py:Given", "--dtype", "float64,float32", "--output-format", "json")
    (target,) = listing(gradlint(folder, *words))["targets"]
    assert [sample["args"][0]["dtype"] for sample in target["samples"]] == ["float64", "float32"]


def test_what_can_not_run_is_told(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "list", "bro ken.py", "ops.py:Given")
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert "GL001 target_not_loadable: target cannot be loaded" in text
    assert "module_that_is_not_there" in text
    assert "1 operator would be checked, 1 can't be." in text
    found = listing(gradlint(folder, "list", "bro ken.py", "--output-format", "json"))
    assert found["targets"][0]["problem"]["code"] == "GL001"
    assert found["targets"][0]["rules"] == []


def test_nothing_to_run(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "list", "plain.py")
    assert done.returncode == 5
    assert "holds no operator" in " ".join(done.stdout.split())


def test_a_target_that_is_not_there(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "list", "ops.py:Gived")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Given" in done.stderr
    assert gradlint(folder, "list").returncode == 2


def test_verbose_names_every_rule(folder: Path, gradlint: Command) -> None:
    done = gradlint(folder, "list", "ops.py:Given", "-v")
    assert "GL401" in done.stdout

"""Every operator under a path must be checked by something, or the gate fails and lists it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.gate.coverage import required

Command = Callable[..., Any]

FUNCTION = """
class {name}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2

    @staticmethod
    def sample_inputs():
        return (torch.ones(3, dtype=torch.float64, requires_grad=True),)
"""

REGISTERED = '''
import torch
from torch.library import Library, custom_op, define

@custom_op("my::first", mutates_args=())
def first(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

torch.library.define("my::second", "(Tensor x) -> Tensor")
define("my::third", "(Tensor x) -> Tensor")
library = Library("other", "DEF")
library.define("fourth(Tensor x) -> Tensor")
settings.define("nothing")
TEXT = """torch.library.define("my::none", "")"""
'''

NATIVE = """
// m.def("commented_out() -> int");
/* m.def("commented_too() -> int"); */
TORCH_LIBRARY(space, m) {
  m.def("fifth(Tensor x) -> Tensor");
  other.def("no");
}
TORCH_LIBRARY_FRAGMENT( space , lib ) {
  lib . def(
      "sixth.overload(Tensor x) -> Tensor", &sixth);
}
TORCH_LIBRARY_IMPL(space, CPU, m) { m.impl("fifth", &fifth); }
"""

NESTED = """
import torch

def make(factor):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * factor

    return Inner.apply

class Abstract(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        raise NotImplementedError

class Plain:
    def forward(self, x):
        return x
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(*paths: str) -> list[tuple[str, int]]:
    return [(item.name, item.location.line) for item in required(paths)]


def test_what_files_define(tmp_path: Path) -> None:
    src = tmp_path / "my src"
    src.mkdir()
    (src / "functions.py").write_text("import torch\n" + FUNCTION.format(name="One"))
    (src / "registered.py").write_text(REGISTERED)
    (src / "native.cpp").write_text(NATIVE)
    (src / "nested.py").write_text(NESTED)
    (src / "plain.py").write_text("x = 1\n")
    (src / ".hidden").mkdir()
    (src / ".hidden" / "functions.py").write_text(FUNCTION.format(name="Hidden"))
    assert names("my src") == [
        ("my src/functions.py:One", 3),
        ("torch.ops.space.fifth", 5),
        ("torch.ops.space.sixth", 9),
        ("my src/nested.py:make.Inner", 5),
        ("my src/registered.py:first", 6),
        ("torch.ops.my.second", 9),
        ("torch.ops.my.third", 10),
        ("torch.ops.other.fourth", 12),
    ]
    # The same file twice is the same operators.
    assert names("my src/functions.py", "my src/../my src/functions.py") == [
        ("my src/functions.py:One", 3)
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [("srk", "did you mean `src`?"), ("notes.txt", "neither a folder nor a source file")],
)
def test_paths_that_can_not_be_meant(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(GradlintError) as caught:
        required([path])
    assert words in str(caught.value)
    assert caught.value.place == "--require-coverage"


def test_a_file_that_can_not_be_parsed_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("class Op(Function):\n  def forward(:\n")
    with pytest.raises(GradlintError, match="can't be parsed") as caught:
        required(["."])
    assert caught.value.place == "broken.py:2"


WRAPPED = """
import torch
{function}
def double(x):
    y = Wrapped.apply(x)
    return y + 1

double.sample_inputs = lambda: (torch.ones(3, dtype=torch.float64, requires_grad=True),)

class Lonely(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2
"""

OPTIONS = ("--select", "GL401", "--seed", "1")


def unchecked(done: Any) -> list[str]:
    return [item["name"] for item in json.loads(done.stdout)["unchecked"]]


def test_the_gate_fails_and_lists_what_nothing_checks(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "ops.py").write_text(WRAPPED.replace("{function}", FUNCTION.format(name="Wrapped")))
    words = ("check", "ops.py:double", *OPTIONS, "--require-coverage", ".")
    done = gradlint(tmp_path, *words)
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert "1 operator under --require-coverage is checked by nothing, which fails the run" in text
    assert "ops.py:23:1 ops.py:Lonely (function)" in text
    assert "Wrapped" not in text.partition("require-coverage")[2]  # its backward ran
    assert unchecked(gradlint(tmp_path, *words, "--output-format", "json")) == ["ops.py:Lonely"]
    done = gradlint(tmp_path, "check", "ops.py", *OPTIONS, "--require-coverage", ".")
    assert done.returncode == 0, done.stdout


def test_a_spec_and_settings_count(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "ops.py").write_text("import torch\n" + FUNCTION.format(name="Op"))
    (tmp_path / "op.yaml").write_text("op: ops.py:Op\ninputs: {x: {shape: [3]}}\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.gradlint]\nrequire-coverage = ["ops.py"]\npaths = ["op.yaml"]\n'
    )
    below = tmp_path / "below"
    below.mkdir()
    done = gradlint(below, "check", *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "../op.yaml" in done.stdout
    (tmp_path / "ops.py").write_text(
        "import torch\n" + FUNCTION.format(name="Op") + FUNCTION.format(name="New")
    )
    done = gradlint(below, "check", *OPTIONS, "--output-format", "json")
    assert (done.returncode, unchecked(done)) == (1, ["../ops.py:New"])


def test_what_runs_in_other_shards_is_checked(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "ops.py").write_text(
        "import torch\n" + "".join(FUNCTION.format(name=f"Op{n}") for n in range(4))
    )
    for part in ("1/2", "2/2"):
        words = ("check", "ops.py", *OPTIONS, "--require-coverage", ".", "--shard", part)
        done = gradlint(tmp_path, *words, "--output-format", "json")
        assert (done.returncode, unchecked(done)) == (0, [])


def test_an_operator_that_was_not_judged_is_not_checked(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "ops.py").write_text("import torch\n" + FUNCTION.format(name="Op"))
    words = ("check", "ops.py", "--select", "GL802", "--require-coverage", "ops.py")
    done = gradlint(tmp_path, *words, "--output-format", "json")
    assert (done.returncode, unchecked(done)) == (1, ["ops.py:Op"])


def test_bad_paths_are_told_before_anything_runs(tmp_path: Path, gradlint: Command) -> None:
    (tmp_path / "ops.py").write_text("import torch\n" + FUNCTION.format(name="Op"))
    done = gradlint(tmp_path, "check", "ops.py", "--require-coverage", "opps.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean `ops.py`?" in done.stderr

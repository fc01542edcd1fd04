"""--changed-since finds what changed through imports, native sources and specs, and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.errors import GradlintError
from gradlint.gate.changed import Changes, unchanged
from gradlint.model.settings import Settings
from gradlint.targets.resolve import resolve

Command = Callable[..., Any]

OP = """
import torch
{imports}

class Op(torch.autograd.Function):
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

FILES = {
    "pkg/__init__.py": "",
    "pkg/plain.py": OP.format(imports=""),
    "pkg/direct.py": OP.format(imports="from . import helper"),
    "pkg/named.py": OP.format(imports="from pkg.helper import thing"),
    "pkg/through.py": OP.format(imports="import pkg.middle"),
    "pkg/late.py": OP.format(imports="def f():\n    import pkg.helper"),
    "pkg/dynamic.py": OP.format(
        imports="import importlib\nimportlib.import_module('.helper', 'pkg')"
    ),
    "pkg/middle.py": "from .helper import thing\n",
    "pkg/helper.py": "thing = 1\n",
    "pkg/built.py": OP.format(imports="SOURCES = [f'{HERE}/csrc/' + 'op.cu']"),
    "pkg/globbed.py": OP.format(imports="SOURCES = 'csrc/*.cpp'"),
    "csrc/op.cu": '#include "op.cuh"\n',
    "csrc/op.cuh": "#  include <deep.h>\n",
    "csrc/deep.h": "// deep\n",
    "csrc/other.cpp": "// other\n",
    "specs/named.yaml": "op: ../pkg/plain.py:Op\n",
    "specs/formula.yaml": 'forward: "x * 2"\ninputs: {x: {shape: [3]}}\n',
    "specs/built.yaml": "op: torch.ops.lib.op\nextension: {sources: [../csrc/other.cpp]}\n"
    "inputs: {x: {shape: [3]}}\n",
    "with space\nand line.py": OP.format(imports=""),
}


def git(folder: Path, *words: str) -> str:
    words = ("-c", "user.name=n", "-c", "user.email=e@example.com", *words)
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TARGETS = (
    *(f"pkg/{name}.py" for name in ("plain", "direct", "named", "through", "late", "dynamic")),
    *("pkg/built.py", "pkg/globbed.py", "with space\nand line.py"),
    *("specs/named.yaml", "specs/formula.yaml", "specs/built.yaml"),
)


def chosen(revision: str = "HEAD", settings: Settings | None = None) -> set[str]:
    """The targets for which something changed."""
    settings = settings or Settings()
    changes = Changes(revision)
    refs = [ref for target in TARGETS for ref in resolve(target, settings)]
    assert len(refs) == len(TARGETS)
    kept = [ref for ref in refs if not unchanged(changes, settings, ref)]
    return {ref.path for ref in kept}


HELPED = {f"pkg/{name}.py" for name in ("direct", "named", "through", "late", "dynamic")}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (None, set()),
        ("pkg/plain.py", {"pkg/plain.py", "specs/named.yaml"}),
        ("pkg/helper.py", HELPED),
        ("pkg/middle.py", {"pkg/through.py"}),
        ("pkg/__init__.py", {t for t in TARGETS if t.startswith("pkg/")} | {"specs/named.yaml"}),
        ("csrc/op.cu", {"pkg/built.py"}),
        ("csrc/deep.h", {"pkg/built.py"}),
        ("csrc/other.cpp", {"pkg/globbed.py", "specs/built.yaml"}),
        ("specs/formula.yaml", {"specs/formula.yaml"}),
        ("with space\nand line.py", {"with space\nand line.py"}),
        ("unrelated.md", set()),
    ],
)
def test_what_depends_on_a_change(
    repository: Path, changed: str | None, expected: set[str]
) -> None:
    if changed is not None:
        path = repository / changed
        path.write_text((path.read_text() if path.exists() else "") + "\n# changed\n")
    assert chosen() == expected
    # Committed, it is a change since the commit before, and none since the last.
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert chosen("HEAD~1") == expected
    assert chosen("HEAD") == set()


def test_a_module_that_is_gone_or_moved_is_a_change(repository: Path) -> None:
    (repository / "pkg" / "helper.py").unlink()
    assert chosen() == HELPED
    git(repository, "checkout", "-q", "pkg/helper.py")
    git(repository, "mv", "pkg/helper.py", "pkg/moved.py")
    assert chosen() == HELPED


def test_files_that_git_does_not_know_yet_count_and_ignored_ones_do_not(repository: Path) -> None:
    (repository / "pkg" / "new.py").write_text("")
    (repository / "pkg" / "plain.py").write_text(OP.format(imports="import pkg.new"))
    git(repository, "add", "pkg/plain.py")
    git(repository, "commit", "-q", "-m", "imports what is not there")
    assert chosen() == {"pkg/plain.py", "specs/named.yaml"}
    (repository / ".gitignore").write_text("new.py\n.gitignore\n")
    assert chosen() == set()


def test_the_inputs_count(repository: Path) -> None:
    (repository / "inputs.py").write_text("def make():\n    return 1\n")
    given = Settings(inputs="inputs.py:make")
    assert chosen(settings=given) == set(TARGETS)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "inputs")
    assert chosen(settings=given) == set()


def test_from_below_the_root(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "pkg" / "helper.py").write_text("thing = 2\n")
    monkeypatch.chdir(repository / "pkg")
    changes = Changes("HEAD")
    (direct,) = resolve("direct.py", Settings())
    (plain,) = resolve("plain.py", Settings())
    assert unchanged(changes, Settings(), direct) == ""
    assert unchanged(changes, Settings(), plain) == "unchanged since HEAD"


def test_what_has_no_file_is_never_left_out(repository: Path) -> None:
    (ref,) = resolve("torch.ops.lib.op", Settings())
    assert unchanged(Changes("HEAD"), Settings(), ref) == ""


@pytest.mark.parametrize("revision", ["nowhere", "", "--help", "HEAD~99", "main..x", "a\nb"])
def test_a_revision_that_is_not_there(repository: Path, revision: str) -> None:
    with pytest.raises(GradlintError, match="is no revision") as caught:
        Changes(revision)
    assert caught.value.exit_code == 2
    assert "fetch-depth" in caught.value.hint


def test_no_repository(tmp_path: Path, gradlint: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "ops.py").write_text(OP.format(imports=""))
    done = gradlint(tmp_path, "check", "ops.py", "--changed-since", "main")
    assert (done.returncode, done.stdout) == (2, "")
    assert "not a git repository" in done.stderr


def test_no_git(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GradlintError, match="git can't be run"):
        Changes("HEAD")


def test_from_the_command_line(repository: Path, gradlint: Command) -> None:
    words = ("check", "pkg", "--select", "GL401", "--changed-since", "main")
    done = gradlint(repository, *words)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    assert "There was nothing to check." in text
    assert "Left out, unchanged since main: 8 operators." in text
    (repository / "pkg" / "middle.py").write_text("from .helper import thing as other\n")
    done = gradlint(repository, *words, "--output-format", "json")
    found = json.loads(done.stdout)
    assert [target["target"] for target in found["targets"]] == ["pkg/through.py:Op"]
    assert len(found["left_out"]["unchanged since main"]) == 7
    assert done.returncode == 0

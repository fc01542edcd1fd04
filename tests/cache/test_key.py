"""Every thing that a verdict depends on is a part of its key: what changes, changes the key."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradlint.base.digests import gradlint_digest
from gradlint.cache import here
from gradlint.cache.key import NO_MATTER, Key, Keys
from gradlint.model.op import OpRef
from gradlint.model.settings import Settings
from gradlint.targets.locate import forget_modules
from gradlint.targets.resolve import resolve

OPERATOR = """
import os
import helper
from package import inner
from torch.autograd import Function

FAST = os.environ.get("MYLIB_FAST")
SOURCES = ["kernel.cpp"]

class Op(Function):
    @staticmethod
    def forward(ctx, x):
        return x * helper.K

class Other(Function):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ops.py").write_text(OPERATOR)
    (tmp_path / "helper.py").write_text("K = 2\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("from . import deep\n")
    (tmp_path / "package" / "deep.py").write_text("")
    (tmp_path / "package" / "unused.py").write_text("")
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "kernel.cpp").write_text('#include "kernel.h"\n')
    (tmp_path / "csrc" / "kernel.h").write_text("")
    (tmp_path / "inputs.py").write_text("def given():\n    return ()\n")
    (tmp_path / "spec.yaml").write_text("op: ops:Op\n")
    (tmp_path / "notes.py").write_text("nothing = 1\n")
    monkeypatch.chdir(tmp_path)
    forget_modules()
    yield tmp_path
    forget_modules()


def made(target: str = "ops.py:Op", **settings: Any) -> Key:
    forget_modules()
    ref = next(iter(resolve(target, Settings())))
    key = Keys(Settings(**settings)).key(ref)
    assert key.text
    return key


def changed(before: Key, after: Key) -> set[str]:
    """The parts in which two keys differ."""
    names = {*before.parts, *after.parts}
    found = {name for name in names if before.parts.get(name) != after.parts.get(name)}
    assert bool(found) == (before.text != after.text)
    return found


def test_the_same_again(folder: Path) -> None:
    assert made() == made()


def test_the_files_it_is_made_of(folder: Path) -> None:
    names = {os.path.relpath(file, os.path.realpath(folder)) for file in made().files}
    assert names == {
        *("ops.py", "helper.py", "package/__init__.py", "package/inner.py", "package/deep.py"),
        *("csrc/kernel.cpp", "csrc/kernel.h"),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("ops.py", "helper.py", "package/__init__.py", "package/inner.py", "package/deep.py"),
        *("csrc/kernel.cpp", "csrc/kernel.h"),
    ],
)
def test_a_file_that_changes(folder: Path, name: str) -> None:
    before = made()
    path = folder / name
    path.write_text(path.read_text() + "\n")
    assert "sources" in changed(before, made())


@pytest.mark.parametrize("name", ["package/unused.py", "inputs.py", "notes.py", "README.md"])
def test_a_file_of_no_concern(folder: Path, name: str) -> None:
    before = made()
    (folder / name).write_text("# something else\n")
    assert changed(before, made()) == set()


def test_a_file_that_comes_before_another(folder: Path) -> None:
    """``helper`` is a package from now on, and no longer helper.py."""
    before = made()
    (folder / "helper").mkdir()
    (folder / "helper" / "__init__.py").write_text("K = 3\n")
    assert "sources" in changed(before, made())


def test_a_file_that_goes(folder: Path) -> None:
    before = made()
    (folder / "package" / "deep.py").unlink()
    assert "sources" in changed(before, made())


def test_a_module_outside_of_the_repository(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one of an editable install."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "afar.py").write_text("K = 1\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    (folder / "helper.py").write_text("from afar import K\n")
    before = made()
    assert str(elsewhere / "afar.py") in before.files
    (elsewhere / "afar.py").write_text("K = 2\n")
    assert changed(before, made()) == {"sources"}


def test_a_test_that_mentions_it(folder: Path) -> None:
    """Arguments are inferred from calls in files that nothing imports."""
    before = made()
    (folder / "tests").mkdir()
    (folder / "tests" / "test_ops.py").write_text("Op.apply(3)\n")
    middle = made()
    assert changed(before, middle) == {"examples"}
    (folder / "tests" / "test_ops.py").write_text("Op.apply(4)\n")
    after = made()
    assert changed(middle, after) == {"examples"}
    (folder / "tests" / "test_more.py").write_text("something.apply(4)\n")
    assert changed(after, made()) == set()


def test_a_specification(folder: Path) -> None:
    before = made("spec.yaml")
    assert {os.path.basename(file) for file in before.files} >= {"spec.yaml", "ops.py", "helper.py"}
    (folder / "spec.yaml").write_text("op: ops:Op\norder: 1\n")
    assert "sources" in changed(before, made("spec.yaml"))


@pytest.mark.parametrize("given", ["inputs.py:given", "inputs:given"])
def test_given_inputs(folder: Path, given: str) -> None:
    before = made(inputs=given)
    assert changed(made(), before) >= {"settings", "sources"}
    (folder / "inputs.py").write_text("def given():\n    return (1,)\n")
    assert "sources" in changed(before, made(inputs=given))


def test_a_module_that_is_imported_before(folder: Path) -> None:
    before = made(imports=("notes",))
    (folder / "notes.py").write_text("nothing = 2\n")
    assert "sources" in changed(before, made(imports=("notes",)))


def test_the_operator_and_how_it_is_named(folder: Path) -> None:
    assert changed(made("ops.py:Op"), made("ops.py:Other")) == {"operator"}


#: Another value of each setting.
OTHERWISE: dict[str, Any] = {
    "inputs": "randn(3)",
    "devices": ("cpu", "cuda"),
    "require_device": True,
    "dtypes": ("float32",),
    "promised_dtypes": ("float32",),
    "select": ("GL4",),
    "ignore": ("GL4",),
    "per_target_ignores": (("ops.py", ("GL4",)),),
    "order": 1,
    "seed": 5,
    "timeout": 9.0,
    "jobs": 7,
    "fail_on": "info",
    "imports": ("math",),
    "memory_mb": 100,
    "max_calls": 100,
    "sanitizer": "memcheck",
    "untrusted": True,
    "debug": True,
    "paths": ("x",),
    "baseline": "x",
    "require_coverage": ("x",),
    "max_failures": 3,
    "severities": (("GL401", "info"),),
    "cluster": "local:2",
    "cache": "x",
}


@pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda field: field.name)
def test_a_setting(folder: Path, field: dataclasses.Field[Any]) -> None:
    """A setting that is added is a part of the key, or is said here to be of no matter."""
    after = made(**{field.name: OTHERWISE[field.name]})
    assert ("settings" in changed(made(), after)) == (field.name not in NO_MATTER)


def test_a_variable_that_the_sources_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MYLIB_FAST", raising=False)
    before = made()
    monkeypatch.setenv("MYLIB_FAST", "1")
    one = made()
    monkeypatch.setenv("MYLIB_FAST", "2")
    assert changed(before, one) == {"variables"}
    assert changed(one, made()) == {"variables"}
    monkeypatch.setenv("MYLIB_SLOW", "1")
    assert changed(made(), made()) == set()


@pytest.mark.parametrize("name", ["TORCH_LOGS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "TZ"])
def test_a_variable_that_libraries_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = made()
    monkeypatch.setenv(name, "something-else")
    assert changed(before, made()) == {"variables"}


@pytest.mark.parametrize(
    ("line", "every"),
    [
        ("os.environ['A']", False),
        ("os.environ.get('A', 1)", False),
        ("'A' in os.environ", False),
        ("os.getenv('A')", False),
        ("os.environ[name]", True),
        ("os.environ.get(name)", True),
        ("dict(os.environ)", True),
        ("os.getenv('A' + 'B')", True),
        ("list(map(os.getenv, names))", True),
        ("print", False),
    ],
)
def test_variables_whose_names_are_put_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, every: bool
) -> None:
    (folder / "helper.py").write_text(f"import os\nname = 'x'\nnames = []\nK = {line}\n")
    monkeypatch.delenv("UNHEARD_OF", raising=False)
    before = made()
    monkeypatch.setenv("UNHEARD_OF", "1")
    assert changed(before, made()) == ({"variables"} if every else set())


@pytest.mark.parametrize(
    ("line", "every"),
    [
        ("from os import environ\nK = environ['A']", False),
        ("from os import environ as e\nK = e[name]", True),
        ("from os import getenv as g\nK = g(name)", True),
    ],
)
def test_variables_read_by_another_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, line: str, every: bool
) -> None:
    (folder / "helper.py").write_text(f"name = 'x'\n{line}\n")
    before = made()
    monkeypatch.setenv("UNHEARD_OF", "1")
    assert changed(before, made()) == ({"variables"} if every else set())


@pytest.mark.parametrize(
    ("part", "function"),
    [
        ("python", "python_digest"),
        ("installed", "installed_digest"),
        ("processor", "processor"),
        ("compilers", "compilers"),
    ],
)
def test_what_is_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, part: str, function: str
) -> None:
    before = made()
    monkeypatch.setattr(here, function, lambda: "another")
    assert changed(before, made()) == {part}


def test_gradlint_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files, and not only its version: it may be installed from a checkout."""
    before = made()
    monkeypatch.setattr("gradlint.cache.key.gradlint_digest", lambda: "another")
    assert changed(before, made()) == {"gradlint"}
    assert len(gradlint_digest()) == 64


def test_the_device(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(devices=("cuda",))
    monkeypatch.setattr(here, "graphics", lambda: "another model")
    assert changed(before, made(devices=("cuda",))) == {"graphics"}
    assert "graphics" not in made().parts


def test_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version, another build of the same version, a package that comes, in any order."""
    found = {"": os.path.join(tmp_path, "")}
    monkeypatch.setattr(here, "installed_folders", lambda: (found[""],))

    def now() -> str:
        here.installed_digest.cache_clear()
        return here.installed_digest()

    def installed(name: str, record: str) -> str:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "RECORD").write_text(record)
        return now()

    seen = [now()]
    seen.append(installed("torch-2.6.0.dist-info", "torch/a.py,sha256=1,5\n"))
    seen.append(installed("torch-2.6.0.dist-info", "torch/a.py,sha256=2,5\n"))
    seen.append(installed("numpy-2.0.dist-info", ""))
    assert len(set(seen)) == len(seen)
    # Where scripts lie, and what bytecode was compiled, is no difference.
    same = "../../../bin/x,sha256=9,1\ntorch/a.py,sha256=2,5\ntorch/__pycache__/a.pyc,,\n"
    assert installed("torch-2.6.0.dist-info", same) == seen[-1]
    here.installed_digest.cache_clear()


def test_another_checkout_has_the_same_keys(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made()
    other = tmp_path_factory.mktemp("checkout")
    for path in folder.rglob("*"):
        if path.is_file():
            target = other / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (other / ".git").mkdir(exist_ok=True)
    monkeypatch.chdir(other)
    assert changed(before, made()) == set()


def test_what_comes_from_no_file_has_no_key(folder: Path) -> None:
    ref = OpRef("nowhere:Op", "module", "nowhere", "Op")
    key = Keys(Settings()).key(ref)
    assert (key.text, key.why) == ("", "comes from no file that can be found")

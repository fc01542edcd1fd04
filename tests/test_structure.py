"""Imports point down the floors, and never in a circle; imports for annotations count too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LONGEST, SLOW, pytest_collection_modifyitems

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    """``gradlint/model/op.py`` → ``gradlint.model.op``; a package has the name of its folder."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports() -> dict[str, set[str]]:
    """Module → those of gradlint that it imports, wherever the import stands.

    The package itself is left out: it defines nothing but names that are loaded when used, and no
    module depends on it.
    """
    texts = {
        module_name(path): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "gradlint").rglob("*.py"))
    }
    return {
        name: {other for other in imported(ast.parse(text), texts) if other != "gradlint"}
        for name, text in texts.items()
        if name != "gradlint"
    }


def imported(tree: ast.Module, modules: Collection[str]) -> Iterator[str]:
    """Those of ``modules`` that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else str(node.module) for name in whole]
        else:
            continue
        yield from (name for name in names if name in modules)


def floors() -> dict[str, int]:
    """The packages and modules right below ``gradlint`` → their floor, 0 at the bottom."""
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name.strip(): floor
        for floor, names in enumerate(reversed(layers))
        for name in names.replace("|", ":").split(":")
    }


def test_there_is_no_circle() -> None:
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def test_every_package_has_a_floor() -> None:
    assert {name.split(".")[1] for name in imports()} == set(floors())


def test_imports_point_down() -> None:
    floor = floors()
    upward = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in sorted(others)
        if name.split(".")[1] != other.split(".")[1]
        and floor[name.split(".")[1]] < floor[other.split(".")[1]]
    ]
    assert upward == []


def test_private_modules_are_imported_in_their_own_package_only() -> None:
    private = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in sorted(others)
        for package, _, last in [other.rpartition(".")]
        if last.startswith("_")
        and not last.startswith("__")
        # Below a package of its own, a module may still be private to the one around it.
        and not f"{name}.".startswith(f"{package}.")
    ]
    assert private == []


def test_no_module_is_imported_by_an_edit_of_the_path() -> None:
    edits = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("sys.path.")
        # A change of the process, which is what is tested there.
        and path.relative_to(ROOT).as_posix() != "tests/trace/test_state.py"
    ]
    assert edits == []


@pytest.mark.parametrize("module", ["model.settings", "model.report", "rules.catalogue"])
def test_what_every_command_needs_is_light(module: str) -> None:
    heavy = "sorted({'torch', 'numpy', 'sympy', 'rich'} & set(sys.modules))"
    code = f"import sys, gradlint.{module}; print({heavy})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == "[]\n"


def test_the_files_that_begin_first_are_there() -> None:
    names = (*SLOW, *LONGEST)
    assert [name for name in names if not (ROOT / "tests" / name).is_file()] == []
    assert len(set(names)) == len(names)


class Collected:
    """What pytest collects, as far as it is asked."""

    def __init__(self, name: str) -> None:
        self.path = ROOT / "tests" / name
        self.marks: list[str] = []

    def add_marker(self, name: str) -> None:
        self.marks.append(name)


@pytest.mark.parametrize(
    ("args", "marks", "expected"),
    [
        (["tests"], "", False),  # what pyproject.toml says, without arguments
        ([str(ROOT)], "", False),
        (["tests"], "slow", True),
        (["tests"], "slow or not slow", True),
        (["tests/running"], "", True),
        (["tests", "tests/running/test_load.py"], "", True),
        (["tests/running/test_load.py::test_any"], "", True),
    ],
)
def test_slow_tests_are_left_out_of_a_run_of_all(
    args: list[str], marks: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    left_out: list[Collected] = []
    config: Any = SimpleNamespace(
        args=args,
        option=SimpleNamespace(markexpr=marks),
        hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
    )
    quick, slow = Collected("running/test_spool.py"), Collected("running/test_load.py")
    items: list[Any] = [quick, slow]
    pytest_collection_modifyitems(config, items)
    assert (quick.marks, slow.marks) == ([], ["slow"])
    assert items == ([slow, quick] if expected else [quick])
    assert left_out == ([] if expected else [slow])

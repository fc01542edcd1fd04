"""Who may import what: private modules stay in their package, rules import at the top."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gradlint

ROOT = Path(gradlint.__file__).parent


def modules(folder: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Dotted name and syntax tree of every module below ``folder``."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = ".".join(("gradlint", *path.relative_to(ROOT).with_suffix("").parts))
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is imported anywhere in ``tree``, with the names taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_import_crosses_a_package_into_a_private_module() -> None:
    crossing = []
    for name, tree in modules():
        package = name.rpartition(".")[0]
        for target in imported(tree):
            parts = target.split(".")
            private = next((k for k, part in enumerate(parts) if part.startswith("_")), None)
            if parts[0] != "gradlint" or private is None or parts[private].startswith("__"):
                continue
            module = ROOT.joinpath(*parts[1 : private + 1])
            if not (module.is_dir() or module.with_suffix(".py").exists()):
                continue  # a private function or class
            owner = ".".join(parts[:private])
            if package != owner and not package.startswith(f"{owner}."):
                crossing.append(f"{name} imports {target}")
    assert crossing == []


def test_rules_import_at_the_top() -> None:
    inside = [
        f"{name}:{node.lineno}"
        for name, tree in modules("rules")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert inside == []


@pytest.mark.parametrize("package", ["experiments", "rules"])
def test_sub_packages_form_no_circle(package: str) -> None:
    """Each module and sub-package of a package counts as one."""
    prefix = f"gradlint.{package}."
    edges: dict[str, set[str]] = {}
    for name, tree in modules(package):
        own = name.removeprefix(prefix).split(".")[0]
        below = (
            t.removeprefix(prefix).split(".")[0] for t in imported(tree) if t.startswith(prefix)
        )
        edges.setdefault(own, set()).update(child for child in below if child != own)
    left = dict(edges)
    while free := [name for name, below in left.items() if not below & left.keys()]:
        for name in free:
            del left[name]
    assert sorted(left) == []

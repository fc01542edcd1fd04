"""``--require-coverage``: operators that no target of the run checks."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Sequence

from gradlint.base.errors import GradlintError, SpecError
from gradlint.base.text import did_you_mean
from gradlint.model.op import OpRef
from gradlint.model.report import TargetReport, Unchecked
from gradlint.running.run import Run
from gradlint.spec.load import load as load_spec
from gradlint.targets.inventory import NATIVE, Defined, defined_under
from gradlint.targets.resolve import is_spec_path
from gradlint.targets.source_file import read_shown_source

_OPS = "torch.ops."


def required(paths: Sequence[str]) -> list[Defined]:
    """The operators that the files and folders ``paths`` define, each once.

    Raises:
        GradlintError: a path does not exist, or a file can't be parsed.
    """
    found: dict[tuple[str, int, str], Defined] = {}
    for path in paths:
        if not os.path.exists(path):
            folder = os.path.dirname(path) or "."
            names = os.listdir(folder) if os.path.isdir(folder) else []
            near = [os.path.join(os.path.dirname(path), name) for name in names]
            raise GradlintError(
                f"{path}: there is no such file or folder",
                place="--require-coverage",
                hint=did_you_mean(path, near, "name a folder, a .py file or a native source"),
            )
        if os.path.isfile(path) and not path.endswith((".py", *NATIVE)):
            raise GradlintError(
                f"{path}: is neither a folder nor a source file",
                place="--require-coverage",
                hint="name a folder, a .py file or a native source",
            )
        for item in defined_under(path):
            key = (os.path.realpath(item.location.file), item.location.line, item.name)
            found.setdefault(key, item)
    return list(found.values())


def unchecked(operators: Iterable[Defined], run: Run) -> list[Unchecked]:
    """Those of ``operators`` that nothing of ``run`` checks.

    An operator is checked by a target that is it, or that it is defined inside of; by a spec that
    names it; and by a target that ran its backward. What was left out of the run on purpose (other
    shards, what did not change) is checked elsewhere.
    """
    lines = _Lines()
    names: set[str] = set()
    for target in run.report.targets:
        if not (target.judged or target.verdict == "error"):
            continue
        names.add(_qualified(target.target))
        if target.location is not None:
            lines.add(target.location.file, target.location.line)
        for place in target.reached:
            lines.add(place.file, place.line)
        if is_spec_path(target.target):
            names.add(_named_in_spec(target))
    for ref in (ref for refs in run.left_out.values() for ref in refs):
        names.add(_qualified(ref.target))
        _add_ref(lines, ref, names)
    return [
        Unchecked(item.name, item.kind, item.location)
        for item in operators
        if not (item.qualified and item.qualified in names) and not lines.touch(item)
    ]


class _Lines:
    """Lines of files at which something is defined, or ran, that a target checks."""

    def __init__(self) -> None:
        self._found: dict[str, set[int]] = {}

    def add(self, file: str, line: int) -> None:
        self._found.setdefault(os.path.realpath(file), set()).add(line)

    def touch(self, item: Defined) -> bool:
        """Whether one of them lies in the definition of ``item``, or is that of a function or class
        around it."""
        lines = self._found.get(os.path.realpath(item.location.file), set())
        if any(item.location.line <= line <= item.last_line for line in lines):
            return True
        return bool(lines & set(_around(item)))


def _around(item: Defined) -> list[int]:
    source = read_shown_source(item.location.file)
    if source is None or source.tree is None:
        return []
    return [
        node.lineno
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and node.lineno < item.location.line <= (node.end_lineno or node.lineno)
    ]


def _add_ref(lines: _Lines, ref: OpRef, names: set[str]) -> None:
    if ref.location is not None:
        lines.add(ref.location.file, ref.location.line)
    if ref.source == "spec":
        names.add(_named_in_spec(TargetReport(ref.target)))


def _named_in_spec(target: TargetReport) -> str:
    try:
        return _qualified(load_spec(target.target).op or "")
    except SpecError:
        return ""  # said when it is loaded


def _qualified(target: str) -> str:
    """``ns.name`` of ``torch.ops.ns.name``, without an overload; "" for other targets."""
    text = target.replace("::", ".").replace(":", ".")
    if not text.startswith(_OPS):
        return ""
    return ".".join(text.removeprefix(_OPS).split(".")[:2])

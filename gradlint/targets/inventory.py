"""Every operator that a file defines, for those who ask whether each of them is checked."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradlint.base.errors import GradlintError
from gradlint.base.files import read_regular
from gradlint.model.report import Location
from gradlint.targets._scan import is_function_class, may_hold_operators, operators
from gradlint.targets._static import StaticModule, static_module
from gradlint.targets.locate import skipped_folder
from gradlint.targets.source_file import (
    MAX_BYTES,
    dotted,
    header,
    literal,
    read_source,
    shown_path,
)

#: Endings of native sources that may register operators.
NATIVE = (".cpp", ".cc", ".cxx", ".cu")

#: A file without any of these registers no operator from Python.
_REGISTERS = re.compile(rb"torch\.library|Library\s*\(|\bdefine\s*\(")

_LIBRARY = re.compile(
    r"\bTORCH_LIBRARY(?:_FRAGMENT)?\s*\(\s*(?P<space>\w+)\s*,\s*(?P<name>\w+)\s*\)"
)
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Defined:
    """An operator that a file defines.

    Args:
        name: as a target would name it: ``path/file.py:Name``, or ``torch.ops.ns.name``.
        kind: "function" or "library".
        location: of its header, or of its registration.
        last_line: of its definition.
        qualified: ``ns.name`` of a registered operator, where the text shows it.
    """

    name: str
    kind: str
    location: Location
    last_line: int
    qualified: str = ""


def defined_under(path: str) -> Iterator[Defined]:
    """Every Function, registered operator and custom op that the file, or the files in the folder,
    at ``path`` define, in the order of files and lines.

    Raises:
        GradlintError: a file that seems to define some can't be parsed.
    """
    if not os.path.isdir(path):
        yield from _defined_in(path)
        return
    for parent, folders, files in os.walk(path):
        folders[:] = sorted(
            name for name in folders if not skipped_folder(os.path.join(parent, name))
        )
        for name in sorted(files):
            if name.endswith((".py", *NATIVE)) and not name.startswith("."):
                yield from _defined_in(os.path.normpath(os.path.join(parent, name)))


def _defined_in(path: str) -> Iterator[Defined]:
    if path.endswith(NATIVE):
        yield from _registered_natively(path)
        return
    if not (may_hold_operators(path) or _may_register(path)):
        return
    module = static_module(path)
    if module is None:
        source = read_source(path)
        line = source.error.lineno if source is not None and source.error is not None else None
        raise GradlintError(
            "can't be parsed, so it is not known which operators it defines",
            place=f"{shown_path(path)}:{line}" if line else shown_path(path),
            hint="mend the file, or name paths without it (--require-coverage)",
        )
    found = [*_in_module(module), *_in_functions(module), *_registered(module)]
    yield from sorted(found, key=lambda item: (item.location.line, item.name))


def _may_register(path: str) -> bool:
    try:
        return _REGISTERS.search(read_regular(path, MAX_BYTES)) is not None
    except OSError:
        return False


def _in_module(module: StaticModule) -> Iterator[Defined]:
    shown = shown_path(module.source.path)
    for op in operators(module):
        if op.kind not in ("function", "library"):
            continue
        node = module.classes.get(op.name) or module.functions.get(op.name)
        last = node.end_lineno if node is not None else None
        qualified = _name_of_custom_op(module, op.name) if op.kind == "library" else ""
        yield Defined(
            f"{shown}:{op.name}", op.kind, op.location, last or op.location.line, qualified
        )


def _in_functions(module: StaticModule) -> Iterator[Defined]:
    """Function classes that functions define: none of them can be named as a target."""
    shown = shown_path(module.source.path)
    known = set(map(id, module.classes.values()))

    def walk(node: ast.AST, prefix: str, inside: bool) -> Iterator[Defined]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from walk(child, f"{prefix}{child.name}.", True)
            elif isinstance(child, ast.ClassDef):
                if inside and id(child) not in known and is_function_class(module, child):
                    place = header(module.source, child)
                    last = child.end_lineno or place.line
                    yield Defined(f"{shown}:{prefix}{child.name}", "function", place, last)
                yield from walk(child, f"{prefix}{child.name}.", inside)
            else:
                yield from walk(child, prefix, inside)

    if module.source.tree is not None:
        yield from walk(module.source.tree, "", False)


def _name_of_custom_op(module: StaticModule, name: str) -> str:
    """``ns.name`` from ``custom_op("ns::name", …)``, where that is a constant."""
    node = module.functions.get(name)
    calls = list(node.decorator_list) if node is not None else [module.assigned.get(name)]
    for call in calls:
        while isinstance(call, ast.Call):
            for argument in call.args[:1]:
                known, value = literal(argument)
                if known and isinstance(value, str) and "::" in value:
                    return value.replace("::", ".")
            call = call.func
    return ""


def _registered(module: StaticModule) -> Iterator[Defined]:
    """Operators that ``torch.library.define`` and ``Library.define`` register."""
    spaces = {
        name: _first_text(value)
        for name, value in module.assigned.items()
        if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "Library"
    }
    for call in ast.walk(module.source.tree or ast.Module([], [])):
        if not isinstance(call, ast.Call):
            continue
        owner, _, last = dotted(call.func).rpartition(".")
        text = _first_text(call)
        if last != "define" or not text:
            continue
        full = module.absolute(f"{owner}.{last}" if owner else last)
        if full == "torch.library.define" and "::" in text:
            space, _, schema = text.partition("::")
        elif owner in spaces:
            space, schema = spaces[owner], text
        else:
            continue
        yield _registration(space, schema, module.source.span(call))


def _registration(space: str, schema: str, place: Location) -> Defined:
    name = schema.partition("(")[0].strip().partition(".")[0]
    qualified = f"{space}.{name}"
    return Defined(
        f"torch.ops.{qualified}", "library", place, place.end_line or place.line, qualified
    )


def _first_text(call: ast.Call) -> str:
    for argument in call.args[:1]:
        known, value = literal(argument)
        if known and isinstance(value, str):
            return value
    return ""


def _registered_natively(path: str) -> Iterator[Defined]:
    """Operators that ``m.def`` registers below ``TORCH_LIBRARY(ns, m)``."""
    try:
        text = read_regular(path, MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise GradlintError(
            f"can't be read: {error.strerror or error}", place=shown_path(path)
        ) from None
    if "TORCH_LIBRARY" not in text:
        return
    text = _COMMENTS.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    blocks = list(_LIBRARY.finditer(text))
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        end = after.start() if after is not None else len(text)
        define = re.compile(rf"\b{re.escape(block['name'])}\s*\.\s*def\s*\(\s*\"([\w.]+)")
        for found in define.finditer(text, block.end(), end):
            line = text.count("\n", 0, found.start()) + 1
            column = found.start() - (text.rfind("\n", 0, found.start()) + 1) + 1
            place = Location(shown_path(path), line, column)
            yield _registration(block["space"], found[1], place)

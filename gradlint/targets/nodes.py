"""Syntax trees of live objects: the node of a class, of a function, of a method."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from gradlint.targets._static import FunctionNode
from gradlint.targets.source_file import SourceFile, bindings, read_source

#: Module of the Functions that torch.library makes around registered operators.
LIBRARY_FUNCTIONS = "torch._library.autograd"

#: Wrappers looked into for the function that was registered (heuristic: one or two are usual).
_WRAPPED = 8

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def class_node(cls: type) -> tuple[SourceFile, ast.ClassDef] | None:
    """The file of ``cls`` and its node; None where its source can't be found."""
    for path in _files_of(cls):
        source = read_source(path)
        if source is None or source.tree is None:
            continue
        nodes = [
            node
            for node in _index(source).get(cls.__qualname__, [])
            if isinstance(node, ast.ClassDef)
        ]
        if nodes:
            lines = _lines_of(cls)
            fitting = [
                node
                for node in nodes
                if any(_first_line(node) <= line <= (node.end_lineno or line) for line in lines)
            ]
            return source, (fitting or nodes)[-1]
    return None


def function_node(function: Any) -> tuple[SourceFile, FunctionNode | ast.Lambda] | None:
    """The file of a function (unwrapped: decorators, partials, methods) and its node."""
    code = code_of(function)
    source = read_source(code.co_filename) if code else None
    if code is None or source is None or source.tree is None:
        return None
    found = _functions(source).get((code.co_name, code.co_firstlineno))
    return (source, found) if found is not None else None


def source_text(thing: Any) -> str:
    """What ``inspect.getsource`` returns for a class or function. That parses the whole file for
    every class, and copies the rest of the file for each; here it is parsed once.

    Raises:
        OSError, TypeError: there is none.
    """
    found: tuple[SourceFile, ast.AST] | None = None
    if isinstance(thing, type):
        found = class_node(thing)
    elif isinstance(thing, FunctionType):
        found = function_node(thing)
    if found is not None and isinstance(found[1], Definition):
        return _block(found[0], found[1])
    if isinstance(thing, type) and _is_read(thing):
        raise OSError(f"no class {thing.__qualname__} is defined in its file")
    return inspect.getsource(thing)


@lru_cache(maxsize=64)
def _block(source: SourceFile, node: Definition) -> str:
    """The lines of a definition, and the comments at its end that belong to it."""
    first, end = _first_line(node), node.end_lineno or node.lineno
    while end < len(source.lines) and _is_idle(source.lines[end]):
        end += 1
    return "".join(inspect.getblock([f"{line}\n" for line in source.lines[first - 1 : end]]))


def _is_idle(line: str) -> bool:
    """Whether there is nothing in ``line`` but a comment."""
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def read_ahead(path: str) -> None:
    """Read and parse the file at ``path``, if it can be, so that what asks for it later finds it
    in memory."""
    source = read_source(path)
    if source is not None:
        _index(source)
        _functions(source)


def method_node(
    cls: type, *names: str
) -> tuple[SourceFile, FunctionNode | ast.Lambda, type] | None:
    """File, node and owner of the first of ``names`` that ``cls`` or a base of it defines.

    What torch's own base classes define does not count. The backward of a custom op is the function
    that was registered with it.
    """
    if "backward" in names and cls.__module__ == LIBRARY_FUNCTIONS:
        registered = function_node(registered_backward(cls))
        return (*registered, cls) if registered is not None else None
    for owner in cls.__mro__:
        if owner.__module__.startswith(("torch.autograd", "torch.nn.modules.module", "builtins")):
            continue
        for name in names:
            if name in vars(owner):
                found = _method_of(owner, name)
                if found is not None:
                    return (*found, owner)
    return None


def registered_backward(cls: Any) -> Any:
    """The function that ``register_autograd`` was given, if ``cls`` is the Function that
    torch.library made around it; else None."""
    if getattr(cls, "__module__", "") != LIBRARY_FUNCTIONS:
        return None
    waiting = [vars_of(cls).get("backward")]
    for _ in range(_WRAPPED):
        if not waiting:
            break
        function = waiting.pop()
        function = getattr(function, "__func__", function)
        for cell in getattr(function, "__closure__", None) or ():
            held = cell.cell_contents
            written = getattr(held, "_backward_fn", None)
            if written is not None:
                return written
            if isinstance(held, FunctionType):
                waiting.append(held)
    return None


def code_of(function: Any) -> CodeType | None:
    """The code object behind a function, whatever it is wrapped in; None for built-ins."""
    for _ in range(32):
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, (staticmethod, classmethod)) or inspect.ismethod(function):
            function = function.__func__
        elif vars_of(function).get("__wrapped__") is not None:
            function = function.__wrapped__
        else:
            break
    return function.__code__ if isinstance(function, FunctionType) else None


def vars_of(thing: Any) -> dict[str, Any]:
    """``vars(thing)``, empty for objects without."""
    try:
        return vars(thing)
    except TypeError:
        return {}


def _method_of(owner: type, name: str) -> tuple[SourceFile, FunctionNode | ast.Lambda] | None:
    held = vars(owner)[name]
    code = code_of(held)
    found = class_node(owner)
    if found is not None:
        source, node = found
        written = [
            statement
            for statement in bindings(node.body)
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
            and statement.name == name
        ]
        lines = (code.co_firstlineno,) if code else ()
        fitting = [item for item in written if {item.lineno, _first_line(item)} & set(lines)]
        if written:
            return source, (fitting or written)[-1]
    return function_node(held)


def _is_read(cls: type) -> bool:
    """Whether the file of the module of ``cls`` was parsed."""
    file = vars_of(sys.modules.get(cls.__module__)).get("__file__")
    source = read_source(file) if isinstance(file, str) and file.endswith(".py") else None
    return source is not None and source.tree is not None


def _files_of(cls: type) -> list[str]:
    files = []
    module = sys.modules.get(cls.__module__)
    file = vars_of(module).get("__file__")
    codes = [code for code in map(code_of, vars(cls).values()) if code is not None]
    # In `__main__` of a notebook each cell is a file of its own, which only methods know.
    if isinstance(file, str) and file.endswith(".py"):
        files.append(file)
    files += [code.co_filename for code in codes]
    return list(dict.fromkeys(files))


def _lines_of(cls: type) -> list[int]:
    lines = [code.co_firstlineno for code in map(code_of, vars(cls).values()) if code]
    first = vars(cls).get("__firstlineno__")
    return [first] if isinstance(first, int) else lines


def _first_line(node: Definition) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


@lru_cache(maxsize=64)
def _functions(source: SourceFile) -> dict[tuple[str, int], FunctionNode | ast.Lambda]:
    """Every function of a file by the name and the first line that its code has."""
    found: dict[tuple[str, int], FunctionNode | ast.Lambda] = {}
    for node in ast.walk(source.tree) if source.tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for line in (node.lineno, _first_line(node)):
                found.setdefault((node.name, line), node)
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), node)
    return found


@lru_cache(maxsize=64)
def _index(source: SourceFile) -> dict[str, list[Definition]]:
    """Every class and function of a file by ``__qualname__``."""
    index: dict[str, list[Definition]] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                name = prefix + child.name
                index.setdefault(name, []).append(child)
                walk(child, name + ("." if isinstance(child, ast.ClassDef) else ".<locals>."))
            else:
                walk(child, prefix)

    if source.tree is not None:
        walk(source.tree, "")
    return index

"""How an operator is called by the code around it: evidence for its arguments.

For ``class Quantize(Function)`` with ``forward(ctx, x, bits, signed)`` and, in the same module,
``def quantize(x, bits: int = 8): return Quantize.apply(x, bits, True)``, :func:`call_hints` gives
``[{"x": Hint(name="x"), "bits": Hint(True, 8, "bits", "int"), "signed": Hint(True, True)}]``.
Nothing is executed: values are literals of the source.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradlint.targets._static import FunctionNode
from gradlint.targets.beside import texts_beside
from gradlint.targets.nodes import class_node, function_node, method_node
from gradlint.targets.signature import has_setup_context
from gradlint.targets.source_file import SourceFile, bindings, dotted, literal, read_source

#: At most so many calls are reported.
_MOST_CALLS = 24

#: In a file's bytes, where a name begins and ends; letters beyond ASCII take several of them.
_NO_LETTER_BEFORE, _NO_LETTER_AFTER = rb"(?<![\w\x80-\xff])", rb"(?![\w\x80-\xff])"


@dataclass(frozen=True)
class Hint:
    """What a call site passes for one parameter.

    Args:
        known: whether ``value`` is a value that the source gives: a literal at the call, the
            default of the enclosing function's parameter, or a constant bound once.
        value: that value; meaningless when not ``known``.
        name: name of the variable, parameter or attribute that is passed; empty for others.
        annotation: annotation of the enclosing function's parameter, as text.
        expression: text of what is passed; for a local variable, of what it was assigned.
    """

    known: bool
    value: Any = None
    name: str = ""
    annotation: str = ""
    expression: str = ""


def call_hints(target: type | Callable[..., Any]) -> list[dict[str, Hint]]:
    """What the code around an operator passes to it, one dict for each call found.

    Looked at are ``Name.apply(…)`` of a Function class, calls through aliases such as
    ``name = Name.apply``, constructor calls ``Name(…)`` of any other class, and calls of a plain
    function, in the file that defines it, then in the other files of its folder.

    Args:
        target: a ``torch.autograd.Function`` class, another class, or a callable.

    Returns:
        Dicts parameter → :class:`Hint`, own file first; parameters are those of forward without
        ctx (or of the constructor without self, or of the callable); those that a call leaves to
        their default are missing. Empty where source can't be found. Never raises.
    """
    try:
        return _call_hints(target)
    except Exception:
        return []


def _call_hints(target: Any) -> list[dict[str, Hint]]:
    found = class_node(target) if isinstance(target, type) else function_node(target)
    if found is None or isinstance(found[1], ast.Lambda):
        return []
    source, node = found[0], found[1]
    applied, parameters = parameters_of(target, node)
    hints: list[dict[str, Hint]] = []
    for file in (source, *neighbours(source, node.name)):
        for call, scopes in _calls(file, node.name, applied):
            hint = _bind(call, parameters, _Scope(file, scopes))
            if hint and hint not in hints:
                hints.append(hint)
            if len(hints) >= _MOST_CALLS:
                return hints
    return hints


def parameters_of(target: Any, node: ast.AST) -> tuple[bool, list[str]]:
    """Whether the target is called as ``Name.apply``, and the names that a call binds to."""
    if not isinstance(target, type):
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        return False, argument_names(node)
    applied = hasattr(target, "apply") and hasattr(target, "setup_context")
    found = method_node(target, "forward" if applied else "__init__")
    if found is None or isinstance(found[1], ast.Lambda):
        return applied, []
    skip = 0 if applied and has_setup_context(target) else 1
    if applied and "classmethod" in map(dotted, found[1].decorator_list):
        skip += 1
    return applied, argument_names(found[1])[skip:]


def argument_names(node: FunctionNode) -> list[str]:
    """Names of the positional parameters."""
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]


def neighbours(source: SourceFile, name: str, folder: str = "") -> Iterator[SourceFile]:
    """The other files of ``folder``, by default that of ``source``, which contain ``name``."""
    folder = folder or os.path.dirname(os.path.abspath(source.path))
    # Op1 is not in a file of Op10: to parse a file takes longer than to search it.
    whole = re.compile(_NO_LETTER_BEFORE + re.escape(name.encode()) + _NO_LETTER_AFTER)
    for path, data in texts_beside(source.path, folder):
        if name.encode() in data and whole.search(data):
            other = read_source(path)
            if other is not None and other.tree is not None:
                yield other


Scopes = tuple[ast.AST, ...]


def _calls(file: SourceFile, name: str, applied: bool) -> Iterator[tuple[ast.Call, Scopes]]:
    """Calls of the operator in a file, each with the functions and classes around it."""
    assert file.tree is not None
    aliases = aliases_of(file.tree, f"{name}.apply" if applied else name)
    yield from calls_to(file.tree, called_as(name, aliases, applied))


def aliases_of(tree: ast.Module, ending: str) -> set[str]:
    """The variables of a module that are assigned a name which ends in ``ending``."""
    return {name for value, name in _renamings(tree) if value.endswith(ending)}


@lru_cache(maxsize=4096)
def _renamings(tree: ast.Module) -> list[tuple[str, str]]:
    """Dotted names that ``tree`` assigns to variables, and these."""
    return [
        (value, target.id)
        for statement in bindings(tree.body)
        if isinstance(statement, ast.Assign)
        for value in [dotted(statement.value)]
        for target in statement.targets
        if value and isinstance(target, ast.Name)
    ]


def called_as(name: str, aliases: Collection[str], applied: bool) -> list[str]:
    """How calls of an operator are listed in :func:`calls_to`.

    Args:
        name: its own.
        aliases: other names of it, or of its ``apply``.
        applied: whether it is called by ``name.apply``.
    """
    return [f"{name}.apply" if applied else name, *aliases]


def calls_to(tree: ast.Module, names: Iterable[str]) -> Iterator[tuple[ast.Call, Scopes]]:
    """The calls of ``names`` in ``tree``, in the order in which a walk meets them, each with the
    functions and classes around it. A name is the last part of a dotted one, or the last two of
    those that end in ``.apply``."""
    index = _call_index(tree)
    found = [item for name in dict.fromkeys(names) for item in index.get(name, ())]
    for _, call, scopes in sorted(found, key=lambda item: item[0]):
        yield call, scopes


@lru_cache(maxsize=4096)
def _call_index(tree: ast.Module) -> dict[str, list[tuple[int, ast.Call, Scopes]]]:
    """The calls in ``tree`` by what is called, each with its number in the order of a walk."""
    index: dict[str, list[tuple[int, ast.Call, Scopes]]] = {}
    number = 0

    def walk(node: ast.AST, scopes: Scopes) -> None:
        nonlocal number
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call):
                number += 1
                parts = dotted(child.func).split(".")
                applied = parts[-1] == "apply" and len(parts) > 1
                key = ".".join(parts[-2:]) if applied else parts[-1]
                if key:
                    index.setdefault(key, []).append((number, child, scopes))
            enters = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            walk(child, (*scopes, child) if enters else scopes)

    walk(tree, ())
    return index


def read_ahead(path: str) -> None:
    """Do once what depends on the file at ``path`` alone."""
    source = read_source(path)
    if source is not None and source.tree is not None:
        _call_index(source.tree)
        _renamings(source.tree)


def _bind(call: ast.Call, parameters: list[str], scope: _Scope) -> dict[str, Hint]:
    bound: dict[str, Hint] = {}
    for name, argument in zip(parameters, call.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        bound[name] = scope.hint(argument)
    for keyword in call.keywords:
        if keyword.arg in parameters:
            bound[str(keyword.arg)] = scope.hint(keyword.value)
    return bound


class _Scope:
    """What names mean at a call: locals, parameters with defaults, attributes, constants."""

    def __init__(self, file: SourceFile, scopes: Scopes) -> None:
        self.file = file
        self.functions = [
            item for item in scopes if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        self.owner = next(
            (item for item in reversed(scopes) if isinstance(item, ast.ClassDef)), None
        )

    def hint(self, argument: ast.expr) -> Hint:
        """What ``argument`` of the call is."""
        text = ast.unparse(argument)
        known, value = literal(argument)
        if known:
            return Hint(True, value, expression=text)
        name = dotted(argument)
        if name.startswith("self.") and name.count(".") == 1:
            return self._attribute(name.partition(".")[2], text)
        if isinstance(argument, ast.Name):
            return self._variable(argument.id, self.functions)
        return Hint(False, name=name.rpartition(".")[2], expression=text)

    def _variable(self, name: str, functions: list[FunctionNode]) -> Hint:
        for depth in range(len(functions) - 1, -1, -1):
            function = functions[depth]
            local = _assigned(function, name)
            if local is not None and name not in _parameter_names(function):
                known, value = literal(local)
                return Hint(known, value, name, expression=ast.unparse(local))
            if name in _parameter_names(function):
                return _from_parameter(function, name)
        for statement in bindings(self.file.tree.body if self.file.tree else []):
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                targets = (
                    statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                )
                if any(isinstance(item, ast.Name) and item.id == name for item in targets):
                    known, value = literal(statement.value)
                    return Hint(known, value, name, expression=ast.unparse(statement.value))
        return Hint(False, name=name, expression=name)

    def _attribute(self, name: str, text: str) -> Hint:
        """``self.name``: what the class's body or its ``__init__`` assigns to it."""
        for statement in bindings(self.owner.body) if self.owner else ():
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                value = _assigned(statement, f"self.{name}")
                if value is None:
                    continue
                known, constant = literal(value)
                if known:
                    return Hint(True, constant, name, expression=text)
                if isinstance(value, ast.Name):
                    return self._variable(value.id, [statement])
                return Hint(False, name=name, expression=ast.unparse(value))
        for statement in bindings(self.owner.body) if self.owner else ():
            if isinstance(statement, ast.Assign) and name in map(dotted, statement.targets):
                known, constant = literal(statement.value)
                return Hint(known, constant, name, expression=ast.unparse(statement.value))
        return Hint(False, name=name, expression=text)


def _assigned(function: FunctionNode, name: str) -> ast.expr | None:
    """The last thing assigned to ``name`` in a function, None where nothing is."""
    value = None
    for statement in bindings(function.body):
        if isinstance(statement, ast.Assign) and name in map(dotted, statement.targets):
            value = statement.value
        elif isinstance(statement, ast.AnnAssign) and dotted(statement.target) == name:
            value = statement.value or value
    return value


def _parameter_names(function: FunctionNode) -> list[str]:
    return argument_names(function) + [argument.arg for argument in function.args.kwonlyargs]


def _from_parameter(function: FunctionNode, name: str) -> Hint:
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    defaults += args.defaults
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    for argument, default in pairs:
        if argument.arg == name:
            annotation = ast.unparse(argument.annotation) if argument.annotation else ""
            known, value = literal(default) if default is not None else (False, None)
            return Hint(known, value, name, annotation, name)
    return Hint(False, name=name, expression=name)

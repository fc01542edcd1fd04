"""Calls of an operator with arguments that the source gives: in docstrings, under ``if __name__ ==
"__main__"``, in tests beside the module and elsewhere in its file.

Nothing is executed. Variables are replaced by what was assigned to them, so that each argument
becomes one expression, such as ``torch.randn(4, 3)``, for the evaluator of expressions to judge.
"""

from __future__ import annotations

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gradlint.targets.beside import example_folders
from gradlint.targets.calls import (
    aliases_of,
    argument_names,
    called_as,
    calls_to,
    neighbours,
    parameters_of,
)
from gradlint.targets.nodes import class_node, function_node, method_node
from gradlint.targets.source_file import SourceFile, bindings, dotted, read_source

#: At most so many calls are worked out, and so many functions lie between a call of the operator
#: and one with known arguments (heuristic: wrappers call wrappers).
_MOST_EXAMPLES, _MOST_WRAPPERS = 6, 2
#: Nodes that an expression may have after variables were replaced (heuristic).
_LARGEST = 300
#: Functions that call the one they are given with the arguments that follow it.
_CHECKERS = frozenset({"gradcheck", "gradgradcheck", "check", "checkpoint"})
#: Methods that change neither shape nor meaning of a tensor, and functions and keywords likewise.
_IDLE_METHODS = frozenset(
    {"requires_grad_", "detach", "clone", "contiguous", "to", "cuda", "cpu", "double", "float"}
)
_IDLE_FUNCTIONS = frozenset({"Parameter", "Variable"})
_IDLE_KEYWORDS = frozenset({"device", "generator", "pin_memory"})
_FLOATING = frozenset({"double", "float", "half", "float64", "float32", "float16", "bfloat16"})

_Environment = dict[str, ast.expr]


@dataclass(frozen=True)
class _Site:
    """A call: its arguments, what variables mean there, and the function around it."""

    args: list[ast.expr]
    keywords: list[ast.keyword]
    known: _Environment
    function: ast.FunctionDef | ast.AsyncFunctionDef | None


def example_calls(target: type | Callable[..., Any]) -> list[dict[str, str]]:
    """Calls of ``target``: parameter → text of the expression that is passed.

    Args:
        target: a ``torch.autograd.Function`` class or a callable.

    Returns:
        At most six calls, those in the operator's own file first. A text may still hold names that
        have no known value. Empty where source can't be found. Never raises.
    """
    found: list[dict[str, str]] = []
    try:
        for example in _examples(target):
            if example not in found:
                found.append(example)
            if len(found) >= _MOST_EXAMPLES:
                break
    except Exception:
        return found
    return found


def calls_of_instances(made: type, method: str = "forward") -> list[dict[str, str]]:
    """Calls of instances of the class ``made``: parameter of ``method`` → text of the expression.

    ``layer = Layer(3)`` and ``layer(torch.randn(5, 3))``, in one scope. As :func:`example_calls`.
    """
    found: list[dict[str, str]] = []
    try:
        place, called = class_node(made), method_node(made, method)
        if place is None or called is None or isinstance(called[1], ast.Lambda):
            return found
        parameters = argument_names(called[1])[1:]
        for tree in _trees(place[0], place[1].name):
            for site in _sites_of_instances(tree, place[1].name):
                texts = _texts(_bound(site, parameters))
                if texts and texts not in found and len(found) < _MOST_EXAMPLES:
                    found.append(texts)
    except Exception:
        return found
    return found


def _examples(target: Any) -> Iterator[dict[str, str]]:
    place = class_node(target) if isinstance(target, type) else function_node(target)
    if place is None or isinstance(place[1], ast.Lambda):
        return
    source, node = place[0], place[1]
    applied, parameters = parameters_of(target, node)
    trees = list(_trees(source, node.name))
    for arguments in _calls_of(trees, node.name, applied, parameters, 0):
        texts = _texts(arguments)
        if texts:
            yield texts


def _texts(arguments: _Environment) -> dict[str, str]:
    return {name: ast.unparse(value) for name, value in arguments.items()}


def _trees(source: SourceFile, name: str) -> Iterator[ast.Module]:
    """The operator's file and its docstrings, then files that name it, beside it or in tests."""
    beside = example_folders(source.path)
    others = [file for place in beside for file in neighbours(source, name, place)]
    for file in (source, *others):
        if file.tree is None:
            continue
        yield file.tree
        yield from _documented(file)


@lru_cache(maxsize=64)
def _documented(file: SourceFile) -> list[ast.Module]:
    """The code in the docstrings of a file."""
    return [
        tree
        for node in ast.walk(file.tree or ast.Module([], []))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        for tree in _code_of(ast.get_docstring(node) or "")
    ]


def read_ahead(path: str) -> None:
    """Do once what depends on the file at ``path`` alone."""
    source = read_source(path)
    if source is not None and source.tree is not None:
        _documented(source)


def _code_of(text: str) -> Iterator[ast.Module]:
    """The code in a docstring: lines behind ``>>>``, and blocks between rows of backticks."""
    prompts = re.findall(r"(?m)^[^\S\n]*(?:>>>|\.\.\.) ?(.*)$", text)
    blocks = re.findall(r"```(?:python|py)?\n(.*?)```", text, re.DOTALL)
    blocks += re.findall(r"::\n\n((?:[^\S\n]+.*\n?|\n)+)", text)
    for code in ("\n".join(prompts), *map(textwrap.dedent, blocks)):
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError):
            continue
        if tree.body:
            yield tree


def _calls_of(
    trees: list[ast.Module], name: str, applied: bool, parameters: list[str], depth: int
) -> Iterator[_Environment]:
    """Parameter → expression for every call, through wrappers where a call is in one."""
    aliases = {name} if not applied else set()
    for tree in trees if applied else ():
        aliases |= aliases_of(tree, f"{name}.apply")
    for tree in trees:
        for site in _sites(tree, name, applied, aliases):
            bound = _bound(site, parameters)
            wrapper = site.function
            inner = argument_names(wrapper) if wrapper is not None else []
            free = {
                node.id
                for value in bound.values()
                for node in ast.walk(value)
                if isinstance(node, ast.Name) and node.id in inner
            }
            if not free:
                yield bound
            elif wrapper is not None and wrapper.name != name and depth < _MOST_WRAPPERS:
                for outer in _calls_of(trees, wrapper.name, False, inner, depth + 1):
                    yield {key: _replaced(value, outer) for key, value in bound.items()}


def _sites(tree: ast.Module, name: str, applied: bool, aliases: set[str]) -> Iterator[_Site]:
    """Calls of the operator, also those that ``gradcheck`` makes of it or of a lambda."""

    def matches(node: ast.expr) -> bool:
        parts = dotted(node).split(".")
        if applied and parts[-1] == "apply" and len(parts) > 1:
            return parts[-2] == name
        return parts[-1] in aliases

    for call, around in calls_to(tree, [*called_as(name, aliases, applied), *_CHECKERS]):
        scopes = tuple(scope for scope in around if not isinstance(scope, ast.ClassDef))
        if matches(call.func):
            known, function = _known_at(tree, call, scopes)
            yield _Site(call.args, call.keywords, known, function)
        elif dotted(call.func).rpartition(".")[2] in _CHECKERS and len(call.args) > 1:
            known, function = _known_at(tree, call, scopes)
            checked, given = call.args[0], _replaced(call.args[1], known)
            values = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
            if matches(checked):
                yield _Site(list(values), [], known, function)
            elif isinstance(checked, ast.Lambda):
                names = [argument.arg for argument in checked.args.args]
                inner = {**known, **dict(zip(names, values, strict=False))}
                for part in ast.walk(checked.body):
                    if isinstance(part, ast.Call) and matches(part.func):
                        yield _Site(part.args, part.keywords, inner, function)


def _sites_of_instances(tree: ast.Module, name: str) -> Iterator[_Site]:
    """Calls of variables that hold an instance of the class ``name`` there."""
    variables = {
        target.id
        for call, _ in calls_to(tree, [name])
        for target in _assigned_from(tree).get(call, ())
        if isinstance(target, ast.Name)
    }
    for call, around in calls_to(tree, sorted(variables)):
        scopes = tuple(scope for scope in around if not isinstance(scope, ast.ClassDef))
        known, function = _known_at(tree, call, scopes)
        value = known.get(dotted(call.func))
        if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == name:
            yield _Site(call.args, call.keywords, known, function)


@lru_cache(maxsize=64)
def _assigned_from(tree: ast.Module) -> dict[ast.expr, list[ast.expr]]:
    """What is assigned, without calls of methods that change no meaning → its targets."""
    found: dict[ast.expr, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = node.value
            while (
                isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and value.func.attr in _IDLE_METHODS
            ):
                value = value.func.value
            found.setdefault(value, []).extend(node.targets)
    return found


def _known_at(
    tree: ast.Module, call: ast.Call, scopes: tuple[Any, ...]
) -> tuple[_Environment, Any]:
    """What variables hold when ``call`` is reached, and the function that it is in."""
    known: _Environment = {}
    for scope in (tree, *scopes):
        if scope is not tree:
            for name in argument_names(scope):
                known.pop(name, None)
            positional = argument_names(scope)
            known.update(zip(positional[::-1], scope.args.defaults[::-1], strict=False))
        for statement in bindings(scope.body):
            if statement.lineno < call.lineno:
                _learn(statement, known)
    return known, scopes[-1] if scopes else None


def _learn(statement: ast.stmt, known: _Environment) -> None:
    """Add what ``statement`` assigns to ``known``."""
    if isinstance(statement, ast.Assign):
        value = _replaced(statement.value, known)
        for target in statement.targets:
            _assign(target, value, known)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        _assign(statement.target, _replaced(statement.value, known), known)
    elif isinstance(statement, ast.For):
        rounds = statement.iter.elts if isinstance(statement.iter, (ast.Tuple, ast.List)) else []
        for value in rounds[-1:]:
            _assign(statement.target, _replaced(value, known), known)


def _assign(target: ast.expr, value: ast.expr, known: _Environment) -> None:
    if isinstance(target, ast.Name):
        known[target.id] = value
    elif isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, value.elts, strict=False):
            _assign(part, item, known)


def _bound(site: _Site, parameters: list[str]) -> _Environment:
    values: list[ast.expr] = []
    for argument in site.args:
        value = _replaced(argument, site.known)
        if isinstance(value, ast.Starred):
            if not isinstance(value.value, (ast.Tuple, ast.List)):
                break
            values += value.value.elts
        else:
            values.append(value)
    bound = dict(zip(parameters, values, strict=False))
    for keyword in site.keywords:
        if keyword.arg in parameters:
            bound[str(keyword.arg)] = _replaced(keyword.value, site.known)
    return bound


def _replaced(node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """``node`` with known variables replaced by their values, without idle calls."""
    made: ast.expr = _Replacer(known).visit(copy.deepcopy(node))
    small = sum(1 for _ in ast.walk(made)) <= _LARGEST
    return made if small else node


class _Replacer(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.known.get(node.id)
        return node if value is None else copy.deepcopy(value)

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        # The function called is no variable, unless it is a method of one.
        if isinstance(node.func, ast.Attribute):
            node.func = self.visit(node.func)
        arguments: list[ast.expr] = []
        for argument in node.args:
            value = self.visit(argument)
            inner = value.value if isinstance(value, ast.Starred) else None
            arguments += inner.elts if isinstance(inner, (ast.Tuple, ast.List)) else [value]
        node.args = arguments
        node.keywords = [k for k in map(self._keyword, node.keywords) if k is not None]
        name = dotted(node.func).rpartition(".")[2]
        if name in _IDLE_FUNCTIONS and node.args:
            return node.args[0]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _IDLE_METHODS:
            return node.func.value
        return node

    def _keyword(self, keyword: ast.keyword) -> ast.keyword | None:
        if keyword.arg in _IDLE_KEYWORDS or keyword.arg == "requires_grad":
            return None
        keyword.value = self.visit(keyword.value)
        dtype = dotted(keyword.value).rpartition(".")[2]
        if keyword.arg is None or (keyword.arg == "dtype" and dtype in _FLOATING):
            return None
        # A dtype kept in a variable: random numbers are floating whatever it is.
        return None if keyword.arg == "dtype" and isinstance(keyword.value, ast.Name) else keyword

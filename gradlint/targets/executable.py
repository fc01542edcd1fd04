"""The places of a function that tests should reach: statements, and the ways of its conditions.

Left out is what no gradient depends on: docstrings, ``pass``, blocks that only refuse (end in
``raise``) or only tell (``warnings.warn``, ``print``), and what runs only for type checkers, for
compilers, or where the file is the program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from gradlint.targets._static import FunctionNode
from gradlint.targets.source_file import SourceFile, dotted

#: First line, last line, first column, last column: bytes from 0, the last one exclusive.
Extent = tuple[int, int, int, int]

#: Functions that only tell something, by the last part of their names.
_TELLING = frozenset(
    {"warn", "warn_explicit", "warning", "warn_once", "print", "debug", "info", "log"}
)

#: Conditions that the inputs of an eager call can't change, by the last part of a name in them.
_NOT_INPUTS = frozenset(
    {
        "TYPE_CHECKING",
        "__name__",
        "__debug__",
        "is_scripting",
        "is_tracing",
        "is_compiling",
        "is_dynamo_compiling",
        "is_exporting",
        "is_in_onnx_export",
    }
)

#: A condition on this says which gradients are asked for. One way through it has nothing to compute
#: and may be out of reach: an op with one differentiable input is never asked for none.
_ASKED_FOR = "needs_input_grad"

#: Characters of a condition that are shown.
_LONGEST = 40


@dataclass(frozen=True)
class Way:
    """One outcome of a condition that has no statement of its own.

    Args:
        line: of the condition.
        condition: its source, shortened.
        outcome: whether the condition is true on this way.
        test: where the condition stands.
        whole: the statement or expression that it decides on.
        arm: what is evaluated on this way; None for the missing ``else`` of an ``if``.
        body: what runs on the other way of such an ``if``.
    """

    line: int
    condition: str
    outcome: bool
    test: Extent
    whole: Extent
    arm: Extent | None = None
    body: Extent | None = None


@dataclass
class Executable:
    """The places of one function.

    Args:
        statements: where each begins and ends; of one that holds others, its header.
        ways: outcomes of conditions without a statement of their own.
    """

    statements: list[Extent] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)


@lru_cache(maxsize=64)
def functions_of(source: SourceFile) -> dict[tuple[int, str], FunctionNode]:
    """Every function of a file by its first line, that of a decorator included, and its name: as
    ``co_firstlineno`` and ``co_name`` of its code."""
    found: dict[tuple[int, str], FunctionNode] = {}
    for node in ast.walk(source.tree) if source.tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            found[first, node.name] = node
    return found


@lru_cache(maxsize=256)
def executable(node: FunctionNode) -> Executable:
    """The places of ``node`` that tests should reach."""
    found = Executable()
    _add_block(found, node.body)
    return found


@lru_cache(maxsize=256)
def names_in(node: ast.AST) -> frozenset[str]:
    """The names, and the last parts of dotted names, that occur in ``node``."""
    return frozenset(
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute))
    )


@lru_cache(maxsize=256)
def takes_parts(node: ast.AST) -> bool:
    """Whether ``node`` takes the real or the imaginary part of a number, ``x.real`` or
    ``torch.imag(x)``, and has no imaginary number of its own, ``1j``."""
    return not has_imaginary_numbers(node) and any(
        isinstance(part, ast.Attribute) and part.attr in ("real", "imag") for part in ast.walk(node)
    )


def has_imaginary_numbers(node: ast.AST) -> bool:
    """Whether an imaginary number stands in ``node``: ``1j``."""
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, complex)
        for part in ast.walk(node)
    )


#: Methods and functions that divide an axis by a number, with the place of it among the arguments
#: of the method.
_SPLIT = {"split": 0, "tensor_split": 0, "chunk": 0, "unfold": 2}


@lru_cache(maxsize=256)
def divisors_in(node: ast.AST) -> frozenset[str]:
    """The names, and the last parts of dotted names, of the numbers that ``node`` divides whole
    numbers by, steps through a range by, or splits tensors by."""
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.FloorDiv, ast.Mod)):
            found.append(part.right)
        elif isinstance(part, ast.Call):
            found += _divisors_of(part)
    return frozenset(
        each.id if isinstance(each, ast.Name) else each.attr
        for each in found
        if isinstance(each, (ast.Name, ast.Attribute))
    )


def _divisors_of(call: ast.Call) -> list[ast.expr]:
    if isinstance(call.func, ast.Name) and call.func.id == "range":
        return call.args[2:]
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _SPLIT:
        return []
    of_torch = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    place = _SPLIT[call.func.attr] + of_torch
    return call.args[place : place + 1]


def _add_block(found: Executable, body: list[ast.stmt]) -> None:
    if _only_refuses(body):
        return
    for statement in body:
        if not _says_nothing(statement):
            _add_statement(found, statement)


def _add_statement(found: Executable, statement: ast.stmt) -> None:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return  # a function of its own, if it runs
    header = _header(statement)
    for part in header:
        found.statements.append(_extent(part))
        _add_ways_of_expressions(found, part)
    if isinstance(statement, ast.If):
        if not names_in(statement.test) & _NOT_INPUTS:
            _add_block(found, statement.body)
            _add_missing_else(found, statement)
        _add_block(found, statement.orelse)
        return
    for block in _blocks(statement):
        _add_block(found, block)


def _add_missing_else(found: Executable, statement: ast.If) -> None:
    refuses = _only_refuses(statement.body) or all(map(_says_nothing, statement.body))
    leaves = isinstance(statement.body[-1], (ast.Return, ast.Continue))  # what follows tells
    if statement.orelse or refuses or leaves or _ASKED_FOR in names_in(statement.test):
        return
    test, body = statement.test, _joined(statement.body)
    found.ways.append(
        Way(
            test.lineno,
            _shown(test),
            False,
            _extent(test),
            _extent(statement),
            body=body,
        )
    )


def _add_ways_of_expressions(found: Executable, part: ast.AST) -> None:
    for node in _walk_here(part):
        if not isinstance(node, ast.IfExp) or names_in(node.test) & {*_NOT_INPUTS, _ASKED_FOR}:
            continue
        for outcome, arm in ((True, node.body), (False, node.orelse)):
            if not _is_constant(arm):
                test, line = _extent(node.test), node.test.lineno
                found.ways.append(
                    Way(line, _shown(node.test), outcome, test, _extent(node), _extent(arm))
                )


def _walk_here(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and what is inside, without functions and comprehensions, whose code is separate."""
    yield node
    for child in ast.iter_child_nodes(node):
        separate = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
        if not isinstance(child, separate):
            yield from _walk_here(child)


def _header(statement: ast.stmt) -> list[ast.AST]:
    """What of ``statement`` belongs to no statement inside."""
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in statement.items]
    if isinstance(statement, ast.Match):
        return [statement.subject]
    if isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
        return []
    return [statement]


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _only_refuses(body: list[ast.stmt]) -> bool:
    """Whether a block ends in ``raise`` without a way around it."""
    return (
        bool(body)
        and isinstance(body[-1], ast.Raise)
        and not any(isinstance(node, ast.Return) for item in body for node in ast.walk(item))
    )


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether no gradient depends on ``statement``."""
    if isinstance(statement, (ast.Pass, ast.Global, ast.Nonlocal, ast.Raise, ast.Assert)):
        return True
    if isinstance(statement, ast.AnnAssign):
        return statement.value is None
    if isinstance(statement, ast.Expr):
        call = statement.value
        telling = isinstance(call, ast.Call) and dotted(call.func).split(".")[-1] in _TELLING
        return telling or isinstance(call, ast.Constant)
    if isinstance(statement, (ast.Assign, ast.Return)):
        return _is_none(statement.value)
    return False


def _is_none(value: ast.expr | None) -> bool:
    """Whether ``value`` is None, or a tuple of nothing else: a gradient that is not computed."""
    if isinstance(value, ast.Tuple):
        return all(map(_is_none, value.elts))
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _is_constant(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_constant(value.operand)
    return isinstance(value, ast.Constant)


def _shown(test: ast.expr) -> str:
    text = ast.unparse(test)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _extent(node: ast.AST) -> Extent:
    line: int = getattr(node, "lineno", 1)
    return (
        line,
        getattr(node, "end_lineno", None) or line,
        getattr(node, "col_offset", 0),
        getattr(node, "end_col_offset", None) or 0,
    )


def _joined(body: list[ast.stmt]) -> Extent:
    first, last = _extent(body[0]), _extent(body[-1])
    return first[0], last[1], first[2], last[3]


def condition_text(node: FunctionNode, span: tuple[int, int, int | None, int | None]) -> str:
    """The source of the condition in the comparison, or call, that stands at ``span``; empty if
    there is none, or if it asks whether a number is NaN."""
    for part in ast.walk(node):
        if not isinstance(part, (ast.Compare, ast.Call)) or _extent(part) != span:
            continue
        condition: ast.expr = part
        if isinstance(part, ast.Call):
            name = dotted(part.func).split(".")
            if name[-1] == "where" or name[-1].startswith("masked_"):
                place = 1 if name[0] == "torch" and name[-1] != "where" else 0
                condition = part.args[place] if len(part.args) > place else part
        elif ast.unparse(part.left) == ast.unparse(part.comparators[-1]):
            return ""
        return _shown(condition)
    return ""

"""Single changes of backward functions, as a slip of the pen makes them.

Every mutation replaces one expression or statement in a function whose name says that it computes
gradients; all else of the file stays, to the character.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Parts of the names of functions that compute gradients.
_OF_GRADIENTS = ("backward", "bwd", "_grad", "grad_", "vjp")
#: Functions and methods → what is called in their place.
_EXCHANGED = {
    "sin": "cos",
    "cos": "sin",
    "exp": "expm1",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "log": "log1p",
    "max": "min",
    "min": "max",
    "amax": "amin",
    "amin": "amax",
    "cumsum": "flip",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "add_": "sub_",
    "sub_": "add_",
    "index_add_": "index_copy_",
    "mul": "div",
}
#: Methods that are left out.
_LEFT_OUT = frozenset(
    {"sum", "mean", "conj", "t", "transpose", "flip", "roll", "abs", "sqrt", "square", "neg"}
    | {"clamp", "clone", "contiguous", "masked_fill", "unsqueeze", "flatten", "permute", "to"}
)
#: The factor of numbers that are not whole.
_FACTOR = 1.5
#: Comparisons → the same with or without equality, and the opposite.
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<=", ">"),
    ast.Gt: (">=", "<"),
    ast.LtE: ("<", ">="),
    ast.GtE: (">", "<="),
}


@dataclass(frozen=True)
class Mutation:
    """A changed file.

    Args:
        words: what was changed.
        line: where, from 1.
        text: of the whole file.
    """

    words: str
    line: int
    text: str


def mutations(source: str) -> Iterator[Mutation]:
    """All mutations of the functions in ``source`` that compute gradients."""
    text = _Text(source)
    seen: set[int] = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        if not any(part in function.name.lower() for part in _OF_GRADIENTS):
            continue
        for node in ast.walk(function):
            if id(node) in seen:
                continue
            seen.add(id(node))
            for words, place, other in _changes(node, text.of):
                made = text.replaced(place, other)
                if made != source and _parses(made):
                    yield Mutation(words, place.lineno, made)


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


#: Words, the node that is replaced, and what stands in its place.
_Change = tuple[str, ast.expr | ast.stmt, str]


class _Text:
    """A source, of which parts are read and replaced by their nodes."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def of(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self._span(node)
        return self._bytes[start:stop].decode()

    def replaced(self, node: ast.expr | ast.stmt, other: str) -> str:
        start, stop = self._span(node)
        return (self._bytes[:start] + other.encode() + self._bytes[stop:]).decode()


_Written = Callable[[ast.expr | ast.stmt], str]


def _changes(node: ast.AST, written: _Written) -> Iterator[_Change]:
    match node:
        case ast.BinOp():
            yield from _of_arithmetic(node, f"({written(node.left)})", f"({written(node.right)})")
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "a minus is left out", node, f"({written(operand)})"
        case ast.UnaryOp(ast.Invert() | ast.Not(), operand):
            yield "a mask is not inverted", node, f"({written(operand)})"
        case ast.Constant(float(value)):
            yield "another number", node, repr(_FACTOR * value if value else 0.5)
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield "an integer is one larger", node, str(value + 1)
        case ast.Compare(left, [operator], [right]) if type(operator) in _COMPARED:
            for other in _COMPARED[type(operator)]:
                yield (
                    f"compared by {other}",
                    node,
                    f"(({written(left)}) {other} ({written(right)}))",
                )
        case ast.Call(ast.Attribute() as called):
            yield from _of_calls(node, called, written)
        case ast.Return(ast.Tuple(elements)):
            for element in elements:
                if not isinstance(element, ast.Constant):
                    yield "None is returned", element, "None"
        case ast.AugAssign(_, ast.Add() | ast.Sub(), _):
            now = "+=" if isinstance(node.op, ast.Add) else "-="
            before, _, after = written(node).partition(now)
            yield "nothing is accumulated", node, f"{before}={after}"
            yield "the sign is reversed", node, f"{before}{'-=' if now == '+=' else '+='}{after}"


def _of_arithmetic(node: ast.BinOp, left: str, right: str) -> Iterator[_Change]:
    match node.op:
        case ast.Add() | ast.Sub():
            other = "-" if isinstance(node.op, ast.Add) else "+"
            yield f"{other} in place of the other", node, f"({left} {other} {right})"
            yield "the second term is missing", node, left
            yield "the first term is missing", node, right
        case ast.Mult():
            yield "/ in place of *", node, f"{left} / {right}"
            yield "the second factor is missing", node, left
            yield "the first factor is missing", node, right
        case ast.Div():
            yield "* in place of /", node, f"{left} * {right}"
            yield "the divisor is missing", node, left
        case ast.Pow():
            yield "the power is missing", node, left
        case ast.MatMult():
            yield "factors are exchanged", node, f"({right} @ {left})"


def _of_calls(node: ast.Call, called: ast.Attribute, written: _Written) -> Iterator[_Change]:
    name, owner = called.attr, written(called.value)
    if name in _LEFT_OUT:
        given = node.args[:1] if owner == "torch" else []
        yield f"`{name}` is left out", node, f"({written(given[0]) if given else owner})"
    if name in _EXCHANGED:
        other, before = _EXCHANGED[name], written(called)
        after = written(node)[len(before) :]
        yield f"`{other}` for `{name}`", node, f"{before.removesuffix(name)}{other}{after}"

"""Bounds between arguments, read from documentation ("text_len <= mel_len <= T") and from what
forward refuses (``if (lo > hi).any(): raise``)."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlint.inputs._evidence import Evidence
from gradlint.inputs._source import syntax
from gradlint.inputs.described import ANY
from gradlint.model.related import Bound, Side

_SIGN = r"(?:<=|>=|≤|≥|<|>)"
_TERM = r"`*(?:[A-Za-z_]\w*|-?\d+)`*"
#: A chain of comparisons that stands by itself: "1 <= n <= N", not "where x > threshold it is 0".
_CHAIN = re.compile(
    rf"(?:^|[,;:(]|\b(?:with|and|in|to|that))\s*(?P<chain>{_TERM}(?:\s*{_SIGN}\s*{_TERM})+)\s*(?=$|[,;)]|\.(?:\s|$))",
    re.MULTILINE,
)
#: Signs of comparisons → whether the first side is the lesser one, and whether both may be equal.
_SIGNS = {
    "<": (True, False),
    "<=": (True, True),
    "≤": (True, True),
    ">": (False, False),
    ">=": (False, True),
    "≥": (False, True),
}
_COMPARISONS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def read_bounds(
    text: str, forward: Callable[..., Any], parameters: Sequence[Evidence]
) -> Iterator[Bound]:
    """The bounds that ``text``, the documentation, and the checks of ``forward`` give."""
    names = {item.name for item in parameters if item.tensorness > 0}
    sizes: dict[str, Side] = {}
    for item in parameters:
        for axis, symbol in enumerate(item.shape if not ANY & set(item.shape) else ()):
            sizes.setdefault(symbol, Side(item.name, axis))
    tree = syntax(forward)
    checked = _Checks(names).of(tree) if tree is not None else ()
    yield from dict.fromkeys([*_documented(text, names, sizes), *checked])


def _documented(text: str, names: set[str], sizes: Mapping[str, Side]) -> Iterator[Bound]:
    for match in _CHAIN.finditer(text):
        parts = re.split(rf"\s*({_SIGN})\s*", match["chain"])
        sides = [_side_in_words(part.strip("`"), names, sizes) for part in parts[::2]]
        if not all(map(_same_way, parts[1::2], parts[3::2])):
            continue
        # Through what is no argument, too: "lower <= x <= upper" of a result x.
        known = [place for place, side in enumerate(sides) if side is not None]
        for first, last in itertools.pairwise(known):
            signs = parts[2 * first + 1 : 2 * last : 2]
            strict = next((sign for sign in signs if not _SIGNS[sign][1]), signs[0])
            yield from _bound(sides[first], strict, sides[last])


def _same_way(one: str, other: str) -> bool:
    return _SIGNS[one][0] == _SIGNS[other][0]


def _side_in_words(word: str, names: set[str], sizes: Mapping[str, Side]) -> Side | None:
    if re.fullmatch(r"-?\d+", word):
        return Side(number=int(word))
    return Side(word) if word in names else sizes.get(word)


def _bound(one: Side | None, sign: str, other: Side | None) -> Iterator[Bound]:
    """The bound, where one of its sides is a tensor's values, or both are sizes."""
    if one is None or other is None:
        return
    first, equal = _SIGNS[sign]
    less, more = (one, other) if first else (other, one)
    values = any(side.of is not None and side.axis is None for side in (less, more))
    if values or (less.axis is not None and more.axis is not None and less != more):
        yield Bound(less, more, not equal)


@dataclass
class _Checks:
    """What a function refuses.

    Args:
        names: of its tensors.
        sizes: local names of sizes of axes.
    """

    names: set[str]
    sizes: dict[str, Side] = field(default_factory=dict)

    def of(self, tree: ast.FunctionDef) -> Iterator[Bound]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign):
                self._read_sizes(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                yield from self._from(node.test, True)
            elif isinstance(node, ast.If) and any(isinstance(s, ast.Raise) for s in node.body):
                yield from self._from(node.test, False)

    def _read_sizes(self, node: ast.Assign) -> None:
        """``B, T, N = x.shape`` and ``T = x.size(1)``."""
        match node:
            case ast.Assign([ast.Name(local)], value) if (side := self._size(value)) is not None:
                self.sizes[local] = side
            case ast.Assign([ast.Tuple(targets)], ast.Attribute(ast.Name(owner), "shape")) if (
                owner in self.names and all(isinstance(item, ast.Name) for item in targets)
            ):
                for axis, item in enumerate(targets):
                    self.sizes[ast.unparse(item)] = Side(owner, axis)

    def _from(self, test: ast.expr, holds: bool) -> Iterator[Bound]:
        """The bounds that follow where ``test`` holds, or where it does not."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                yield from self._from(operand, not holds)
            case ast.BoolOp(op, values) if isinstance(op, ast.And) == holds:
                for value in values:
                    yield from self._from(value, holds)
            case ast.Call(ast.Name("bool"), [inner]):
                yield from self._from(inner, holds)
            case ast.Call(ast.Attribute(inner, "item"), []):
                yield from self._from(inner, holds)
            case ast.Call(ast.Attribute(ast.Name("torch"), "any" | "all" as which), [inner]):
                yield from self._of_all(inner, which, holds)
            case ast.Call(ast.Attribute(inner, "any" | "all" as which), []):
                yield from self._of_all(inner, which, holds)
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
                sign = _COMPARISONS[type(op)] if holds else _OPPOSITE[_COMPARISONS[type(op)]]
                most = {"<": "max", "<=": "max", ">": "min", ">=": "min"}
                flipped = {"max": "min", "min": "max"}[most[sign]]
                one = self._extreme(left, most[sign]) or self._size(left)
                other = self._extreme(right, flipped) or self._size(right)
                yield from _bound(one, sign, other)

    def _of_all(self, inner: ast.expr, which: str, holds: bool) -> Iterator[Bound]:
        """What follows where all elements of ``inner`` are true, or none is."""
        if (which == "all") == holds:
            yield from self._elementwise(inner, holds)

    def _elementwise(self, test: ast.expr, holds: bool) -> Iterator[Bound]:
        match test:
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr() as op, right) if (
                isinstance(op, ast.BitAnd) == holds
            ):
                yield from self._elementwise(left, holds)
                yield from self._elementwise(right, holds)
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARISONS:
                sign = _COMPARISONS[type(op)] if holds else _OPPOSITE[_COMPARISONS[type(op)]]
                yield from _bound(self._side(left), sign, self._side(right))

    def _side(self, node: ast.expr) -> Side | None:
        if isinstance(node, ast.Name) and node.id in self.names:
            return Side(node.id)
        return self._size(node)

    def _size(self, node: ast.expr) -> Side | None:
        """The size of an axis, or an integer."""
        match node:
            case ast.Constant(int(number)) if not isinstance(number, bool):
                return Side(number=number)
            case ast.Name(name):
                return self.sizes.get(name)
            case ast.Call(ast.Attribute(ast.Name(name), "size"), [ast.Constant(int(axis))]):
                return Side(name, axis) if name in self.names and axis >= 0 else None
            case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(int(axis))):
                return Side(name, axis) if name in self.names and axis >= 0 else None
            case ast.Call(ast.Name("len"), [ast.Name(name)]):
                return Side(name, 0) if name in self.names else None
        return None

    def _extreme(self, node: ast.expr, which: str) -> Side | None:
        """The tensor of which ``node`` is the largest element, or the smallest one."""
        match node:
            case ast.Call(ast.Name("int" | "float"), [inner]):
                return self._extreme(inner, which)
            case ast.Call(ast.Attribute(inner, "item"), []):
                return self._extreme(inner, which)
            case ast.Call(ast.Attribute(ast.Name(name), called), []):
                known = called in (which, f"a{which}") and name in self.names
                return Side(name) if known else None
        return None

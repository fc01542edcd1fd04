"""From a text to a checked syntax tree. Nothing is run here, and torch is not imported."""

from __future__ import annotations

import ast
import io
import operator
import re
import tokenize
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from gradlint.base.text import did_you_mean
from gradlint.expressions import limits
from gradlint.expressions import vocabulary as words
from gradlint.expressions.limits import (
    ExpressionError,
    TooLarge,
    check_bits,
    check_elements,
    check_power,
    check_repeat,
    check_size,
)

_OPERATORS = (ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context)
_PLAIN = (
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List),
    *(ast.Slice, ast.Subscript, ast.Dict, ast.keyword),
)
_REFUSED = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "an f-string",
    ast.NamedExpr: "an assignment (`:=`)",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "unpacking with `*`",
    ast.Set: "a set",
}


@dataclass(frozen=True)
class Expression:
    """A text that passed the whitelist.

    Args:
        text: the expression as written.
        tree: its syntax tree.
        names: those of the allowed names that it uses.
    """

    text: str
    tree: ast.expr
    names: frozenset[str]


def compile_expression(text: str, names: Collection[str] = ()) -> Expression:
    """Check ``text`` against the whitelist.

    Args:
        text: one expression; may span lines.
        names: names that will be given at evaluation. They win over functions and constants
            of the same name, except where they are called.

    Raises:
        ExpressionError: at the first thing in it that isn't allowed.
    """
    return checked(text, parse(text), names)


def checked(text: str, tree: ast.expr, names: Collection[str]) -> Expression:
    """The expression of ``tree``, the whole or a part of what :func:`parse` made of ``text``."""
    checker = _Checker(text, frozenset(names))
    checker.check(tree, 1)
    return Expression(text, tree, frozenset(checker.used))


def parse(text: str, *, before: str = "", after: str = "") -> ast.expr:
    """The syntax tree of ``before + text + after`` with every line end read as a space."""
    if len(text) > limits.MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(text)} characters; at most {limits.MAX_LENGTH} are allowed",
            text=text,
        )
    if not text.strip():
        raise ExpressionError("the expression is empty", text=text)
    # One line, so that columns are offsets; leading blanks would be an indentation error.
    line = re.sub(r"\s", " ", text)
    shift = 0
    if not before:
        shift = len(line) - len(line.lstrip())
        line = line.lstrip()
    source = before + line + after
    shift -= len(before)
    _refuse_comment(text, line, shift + len(before))
    try:
        with warnings.catch_warnings():
            # `1 is x` and the like would warn on stderr; the checks below report them.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        if before and (error.offset or 1) + shift < 1:
            # The open bracket seems to be the one added here; without it, the user's is blamed.
            parse(text)
        # At the end of the text the parser gives no offset.
        column = error.offset + shift if error.offset else len(text.rstrip())
        column = max(1, min(column, len(text)))
        reason = (error.msg or "invalid syntax").removesuffix(". Perhaps you forgot a comma?")
        raise ExpressionError(f"can't be read: {reason}", text=text, column=column) from None
    except (ValueError, MemoryError, RecursionError):
        # NUL characters, surrogates, integers of thousands of digits, and deep nesting.
        raise ExpressionError(
            "can't be read: it is nested too deeply or contains invalid characters", text=text
        ) from None
    if shift or not source.isascii():
        for node in ast.walk(tree):
            if isinstance(node, (ast.expr, ast.keyword)):
                node.col_offset = _characters(source, node.col_offset) + shift
                node.end_col_offset = _characters(source, node.end_col_offset or 0) + shift
    return tree


def _refuse_comment(text: str, line: str, shift: int) -> None:
    if "#" not in line:
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            if token.type == tokenize.COMMENT:
                raise ExpressionError(
                    "a comment (`#`) inside an expression would hide what follows it",
                    text=text,
                    column=token.start[1] + 1 + shift,
                )
    except (tokenize.TokenError, SyntaxError):
        return


def _characters(source: str, offset: int) -> int:
    return offset if source.isascii() else len(source.encode()[:offset].decode(errors="ignore"))


class _Checker:
    def __init__(self, text: str, names: frozenset[str]) -> None:
        self.text = text
        self.names = names
        self.used: set[str] = set()
        self.fold = Folder(self.names)

    def check(self, node: ast.AST, depth: int) -> None:
        if depth > limits.MAX_DEPTH:
            raise self.error(node, f"nested more than {limits.MAX_DEPTH} levels deep")
        if isinstance(node, ast.Name):
            self.name(node)
        elif isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Attribute):
            self.attribute(node, depth)
        elif isinstance(node, ast.Call):
            self.call(node, depth)
        elif isinstance(node, _PLAIN):
            if isinstance(node, ast.Dict) and None in node.keys:
                raise self.error(node, "unpacking with `**` is not allowed in an expression")
            for child in _children(node):
                self.check(child, depth + 1)
            if isinstance(node, ast.BinOp):
                self.size(node)
        elif not isinstance(node, _OPERATORS):
            what = _REFUSED.get(type(node), f"`{type(node).__name__}`")
            raise self.error(node, f"{what} is not allowed in an expression")

    def name(self, node: ast.Name) -> None:
        if node.id in self.names:
            self.used.add(node.id)
            return
        if node.id in words.CONSTANTS or node.id in words.DTYPES:
            return
        self.underscore(node, node.id)
        if node.id in words.FUNCTIONS:
            raise self.error(node, f"`{node.id}` is a function", f"call it: {node.id}(…)")
        known = [*self.names, *words.CONSTANTS, *words.FUNCTIONS, *words.DTYPES]
        hint = did_you_mean(node.id, known)
        if not hint and self.names:
            hint = "the names here are " + ", ".join(
                f"`{name}`" for name in sorted(self.names)[:12]
            )
        raise self.error(node, f"unknown name `{_short(node.id)}`", hint)

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bytes):
            raise self.error(node, "a bytes literal is not allowed in an expression")
        if isinstance(value, int) and value.bit_length() > limits.MAX_BITS:
            raise self.error(node, f"an integer of more than {limits.MAX_BITS} bits")

    def attribute(self, node: ast.Attribute, depth: int) -> None:
        self.underscore(node, node.attr)
        prefix = dotted(node.value)
        if prefix in words.PREFIXES and prefix.split(".")[0] not in self.names:
            if node.attr in words.CONSTANTS or node.attr in words.DTYPES:
                return
            if node.attr in words.FUNCTIONS:
                raise self.error(
                    node, f"`{node.attr}` is a function", f"call it: {node.attr}(…)", node.attr
                )
            known = [*words.CONSTANTS, *words.DTYPES, *words.FUNCTIONS]
            raise self.error(
                node,
                f"unknown name `{prefix}.{_short(node.attr)}`",
                did_you_mean(node.attr, known),
                node.attr,
            )
        self.check(node.value, depth + 1)
        if node.attr in words.ATTRIBUTES:
            return
        if node.attr in words.METHODS:
            raise self.error(
                node, f"`.{node.attr}` is a method", f"call it: .{node.attr}(…)", node.attr
            )
        raise self.error(
            node,
            f"unknown attribute `.{_short(node.attr)}`",
            did_you_mean(node.attr, [*words.ATTRIBUTES, *words.METHODS]),
            node.attr,
        )

    def call(self, node: ast.Call, depth: int) -> None:
        target = node.func
        is_function = True
        if isinstance(target, ast.Name):
            self.function(node, target.id, target.id)
        elif isinstance(target, ast.Attribute):
            self.underscore(target, target.attr)
            prefix = dotted(target.value)
            is_function = prefix in words.PREFIXES and prefix.split(".")[0] not in self.names
            if is_function:
                self.function(target, target.attr, f"{prefix}.{target.attr}")
            else:
                self.check(target.value, depth + 1)
                self.method(target)
        else:
            raise self.error(target, "only functions and methods of the whitelist can be called")
        for argument in node.args:
            self.check(argument, depth + 1)
        if is_function:
            self.parameters(node, target)
        for keyword in node.keywords:
            self.keyword(keyword, depth)
        self.size(node)

    def parameters(self, node: ast.Call, target: ast.Name | ast.Attribute) -> None:
        """Refuse arguments that the function of this call may not be given."""
        name = target.id if isinstance(target, ast.Name) else target.attr
        allowed = words.PARAMETERS.get(name)
        if allowed is None:
            return
        hint = f"its arguments here are {', '.join(word for word in allowed if word != '-')}"
        for position, argument in enumerate(node.args):
            if position >= len(allowed) or allowed[position] == "-":
                which = f"argument number {position + 1} of `{name}` is not allowed"
                raise self.error(argument, f"{which} in an expression", hint)
        for keyword in node.keywords:
            if keyword.arg in words.KEYWORDS and keyword.arg not in allowed:
                message = f"`{name}` has no argument `{_short(keyword.arg)}` in an expression"
                raise self.error(keyword, message, hint)

    def size(self, node: ast.expr) -> None:
        """Refuse what is too large whatever the values of the names are."""
        try:
            self.fold.check(node)
        except TooLarge as error:
            raise self.error(node, f"refused: {error}") from None

    def method(self, node: ast.Attribute) -> None:
        if node.attr in words.METHODS:
            return
        hint = did_you_mean(node.attr, words.METHODS)
        if node.attr in words.ATTRIBUTES:
            hint = f"it is not a method: write .{node.attr} without parentheses"
        elif node.attr in words.FUNCTIONS:
            hint = f"write {node.attr}(…) as a function"
        raise self.error(node, f"unknown method `.{_short(node.attr)}`", hint, node.attr)

    def keyword(self, node: ast.keyword, depth: int) -> None:
        if node.arg is None:
            raise self.error(node, "unpacking with `**` is not allowed in an expression")
        self.underscore(node, node.arg)
        if node.arg not in words.KEYWORDS:
            raise self.error(
                node,
                f"unknown keyword argument `{_short(node.arg)}`",
                did_you_mean(node.arg, words.KEYWORDS),
            )
        self.check(node.value, depth + 1)

    def function(self, node: ast.expr, name: str, shown: str) -> None:
        if name in words.FUNCTIONS:
            return
        self.underscore(node, name)
        if name in self.names:
            raise self.error(node, f"`{name}` is a value here and can't be called")
        raise self.error(
            node,
            f"unknown function `{_short(shown)}`",
            did_you_mean(name, words.FUNCTIONS),
            name if isinstance(node, ast.Attribute) else "",
        )

    def underscore(self, node: ast.AST, name: str) -> None:
        if name.startswith("_"):
            raise self.error(
                node,
                f"`{_short(name)}`: a name with a leading underscore is not allowed here",
                at=name if isinstance(node, ast.Attribute) else "",
            )

    def error(self, node: ast.AST, message: str, hint: str = "", at: str = "") -> ExpressionError:
        column = getattr(node, "col_offset", 0)
        if at:
            # The span of an attribute starts with its value and ends with the wrong name.
            column = getattr(node, "end_col_offset", len(at)) - len(at)
        return ExpressionError(message, text=self.text, column=max(column, 0) + 1, hint=hint)


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a chain of names, else nothing."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr_context):
            yield child


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


# -- sizes that are known from the text alone ------------------------------------------------------

_FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}
#: Functions and methods whose arguments are the sizes of what they make, or factors of it.
_SIZED = frozenset(["zeros", "ones", "rand", "randn", "eye", "full"])
_SIZED_METHODS = frozenset(["expand", "new_ones", "new_zeros", "repeat", "tile"])
_LAST = {"arange": 1, "linspace": 3, "logspace": 3, "randperm": 1}


class Folder:
    """Evaluates the integers of one expression that do not depend on names."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.known: dict[int, Any] = {}

    def number(self, node: ast.AST) -> Any:
        """The integer or string that ``node`` stands for, or None."""
        if id(node) not in self.known:
            self.known[id(node)] = self._number(node)
        return self.known[id(node)]

    def _number(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.number(node.operand)
            return -value if isinstance(value, int) else None
        if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
            left, right = self.number(node.left), self.number(node.right)
            if not isinstance(left, int) or not isinstance(right, int):
                return None
            if isinstance(node.op, ast.Pow):
                check_power(left, right)
            if isinstance(node.op, ast.LShift):
                check_bits(left.bit_length() + right)
            try:
                value = _FOLDED[type(node.op)](left, right)
            except (ArithmeticError, ValueError):
                return None
            if isinstance(value, int):
                check_bits(value.bit_length())
                return value
        return None

    def check(self, node: ast.expr) -> None:
        """Refuse ``node``, an operation or call, where its size is known and too large."""
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mult):
                self._repeated(node.left, node.right)
                self._repeated(node.right, node.left)
            self.number(node)
        elif isinstance(node, ast.Call):
            self._call(node)

    def _repeated(self, sequence: ast.expr, times: ast.expr) -> None:
        count, repeats = self._count(sequence), self.number(times)
        if count and isinstance(repeats, int):
            check_repeat(count, repeats)

    def _count(self, node: ast.expr) -> int:
        """Items of a literal list, tuple or string; 0 for anything else."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return len(node.value)
        if isinstance(node, (ast.List, ast.Tuple)):
            return sum(max(self._count(part), 1) for part in node.elts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for sequence, times in ((node.left, node.right), (node.right, node.left)):
                count, repeats = self._count(sequence), self.number(times)
                if count and isinstance(repeats, int):
                    return count * max(repeats, 0)
        return 0

    def _call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        sizes = list(node.args) + [word.value for word in node.keywords if word.arg == "size"]
        is_method = isinstance(node.func, ast.Attribute) and not _is_prefix(node.func, self.names)
        if name in (_SIZED_METHODS if is_method else _SIZED) or (name == "tile" and not is_method):
            if name == "full":
                sizes = sizes[:1]
            flat: list[ast.expr] = []
            for part in sizes:
                flat += part.elts if isinstance(part, (ast.Tuple, ast.List)) else [part]
            if name == "eye" and len(flat) == 1:
                flat = flat * 2
            known = [self.number(part) for part in flat]
            check_size([value for value in known if isinstance(value, int) and value > 0])
        elif name in _LAST and not is_method and len(sizes) == _LAST[name]:
            value = self.number(sizes[-1])
            if isinstance(value, int):
                check_elements(value)


def _is_prefix(node: ast.Attribute, names: frozenset[str]) -> bool:
    return isinstance(node.value, ast.Name) and (
        node.value.id in words.PREFIXES and node.value.id not in names
    )

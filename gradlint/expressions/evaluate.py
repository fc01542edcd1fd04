"""The interpreter: walks a checked syntax tree and calls the functions of the whitelist."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gradlint.base.text import error_line, error_text
from gradlint.expressions import _bounds as bounds
from gradlint.expressions import limits
from gradlint.expressions import vocabulary as words
from gradlint.expressions._factories import Factory
from gradlint.expressions._operations import Operations, to_dtype
from gradlint.expressions.arguments import Arguments
from gradlint.expressions.compile import Expression, dotted
from gradlint.expressions.limits import ExpressionError, kind_of
from gradlint.model.sample import map_tensors

_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def evaluate(
    expression: Expression,
    env: Mapping[str, Any],
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Any:
    """The value of ``expression``, with the values of names from ``env``, which may be any mapping,
    also a lazy one.

    Args:
        generator: source of random numbers; default torch's global one.
        dtype: of tensors made by ``randn`` and the like; default that of the first floating
            tensor among the names used, else float64.
        device: likewise; default that of the first tensor, else the CPU.

    Raises:
        ExpressionError: the computation failed or exceeded the limits. What is not about the
            expression passes through: memory that ran out, an interruption, and what hooks and
            modes of torch raise to end a computation that they watch.
    """
    return _Interpreter(expression, env, generator, dtype, device).run()


def evaluate_arguments(
    arguments: Arguments, seed: int = 0
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The values of ``arguments``: ``(args, kwargs)``.

    Floating tensors are float64 unless a dtype is given, random ones come from ``seed``.
    Tensors require grad only where ``requires_grad=True`` was written.

    Raises:
        ExpressionError: an argument can't be computed.
    """
    generator = torch.Generator().manual_seed(seed % 2**63)

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().requires_grad_(tensor.requires_grad)

    def value(expression: Expression) -> Any:
        made = evaluate(expression, {}, generator=generator, dtype=torch.float64, device="cpu")
        return map_tensors(made, leaf)

    args = tuple(value(expression) for expression in arguments.positional)
    return args, {name: value(expression) for name, expression in arguments.keywords.items()}


class _Interpreter:
    """One evaluation of one expression."""

    def __init__(
        self,
        expression: Expression,
        env: Mapping[str, Any],
        generator: torch.Generator | None,
        dtype: torch.dtype | None,
        device: torch.device | str | None,
    ) -> None:
        self.expression = expression
        self.env = env
        self.generator = generator
        self.dtype = dtype
        self.device = device
        self.ops = Operations(self.factory)
        self.seen: dict[str, list[tuple[torch.Tensor, int | None]]] = {}

    def run(self) -> Any:
        """The value of the expression."""
        made = self.value(self.expression.tree)
        for name, given in self.seen.items():
            if any(version != _version(tensor) for tensor, version in given):
                raise self.error(self.expression.tree, f"the formula writes to its input `{name}`")
        return made

    def value(self, node: ast.AST) -> Any:
        """The value of ``node``."""
        try:
            return getattr(self, f"on_{type(node).__name__}")(node)
        except ExpressionError:
            raise
        except limits.TooLarge as error:
            raise self.error(node, f"refused: {error}") from None
        except Exception as error:
            if not _is_ours(error):
                raise
            raise self.error(node, f"{self.shown(node)} failed: {error_line(error)}") from error

    def on_Constant(self, node: ast.Constant) -> Any:
        return limits.check_items(node.value)

    def on_Name(self, node: ast.Name) -> Any:
        if node.id in self.expression.names:
            value = self.env[node.id]
            if node.id not in self.seen:
                self.seen[node.id] = [(part, _version(part)) for part in bounds.tensors(value)]
            return value
        return _constant(node.id)

    def on_Attribute(self, node: ast.Attribute) -> Any:
        prefix = dotted(node.value)
        if prefix in words.PREFIXES and prefix.split(".")[0] not in self.expression.names:
            return _constant(node.attr)
        value = self.value(node.value)
        if isinstance(value, torch.Tensor):
            if node.attr in ("values", "indices"):
                raise self.error(node, f"a tensor has no `.{node.attr}`")
            found = getattr(value, node.attr)
            return tuple(found) if node.attr == "shape" else found
        if isinstance(value, tuple) and node.attr in ("values", "indices"):
            return getattr(value, node.attr)
        raise self.error(node, f"`.{node.attr}` needs a tensor, not {kind_of(value)}")

    def on_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.value(node.left), self.value(node.right)
        return self.ops.binary(type(node.op), left, right)

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand, value)
        return self.ops.made(_UNARY[type(node.op)](value))

    def on_BoolOp(self, node: ast.BoolOp) -> Any:
        stop = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part)
            if self.truth(part, value) is stop:
                return value
        return value

    def on_Compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for kind, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            bounds.check_broadcast((left, right))
            step = self.ops.made(_COMPARE[type(kind)](left, right))
            if isinstance(step, torch.Tensor) and isinstance(result, torch.Tensor):
                bounds.check_broadcast((step, result))
                step = self.ops.made(result & step)
            result = step
            if not isinstance(step, torch.Tensor) and not step:
                return step
            left = right
        return result

    def on_IfExp(self, node: ast.IfExp) -> Any:
        chosen = self.truth(node.test, self.value(node.test))
        return self.value(node.body if chosen else node.orelse)

    def truth(self, node: ast.AST, value: Any) -> bool:
        if isinstance(value, torch.Tensor) and value.numel() != 1:
            raise self.error(
                node,
                f"a tensor of shape {list(value.shape)} is neither true nor false",
                "use where(…) instead of if, and & | ~ instead of and, or, not",
            )
        return bool(value)

    def on_Tuple(self, node: ast.Tuple) -> Any:
        return limits.check_items(tuple(self.value(part) for part in node.elts))

    def on_List(self, node: ast.List) -> Any:
        return limits.check_items([self.value(part) for part in node.elts])

    def on_Dict(self, node: ast.Dict) -> Any:
        made = {}
        for key, part in zip(node.keys, node.values, strict=True):
            if key is None:
                raise self.error(node, "unpacking with `**` is not allowed in an expression")
            made[self.value(key)] = self.value(part)
        return limits.check_items(made)

    def on_Slice(self, node: ast.Slice) -> Any:
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else self.value(end) for end in ends))

    def on_Subscript(self, node: ast.Subscript) -> Any:
        value, index = self.value(node.value), self.value(node.slice)
        if isinstance(value, torch.Tensor):
            bounds.check_index(value, index)
            advanced = isinstance(index, (torch.Tensor, list, tuple))
            return self.ops.made(value[index], view=not advanced)
        if isinstance(value, (str, list, tuple, dict)):
            return value[index]
        raise self.error(node, f"{kind_of(value)} can't be indexed")

    def on_Call(self, node: ast.Call) -> Any:
        target = node.func
        if isinstance(target, ast.Attribute):
            prefix = dotted(target.value)
            if prefix not in words.PREFIXES or prefix.split(".")[0] in self.expression.names:
                return self.method(node, target)
            name = target.attr
        else:
            assert isinstance(target, ast.Name)
            name = target.id
        args, kwargs = self.arguments(node)
        return self.ops.function(words.ALIASES.get(name, name), args, kwargs)

    def arguments(self, node: ast.Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args = tuple(self.value(part) for part in node.args)
        kwargs = {part.arg: self.value(part.value) for part in node.keywords if part.arg}
        if "dtype" in kwargs:
            kwargs["dtype"] = to_dtype(kwargs["dtype"])
        return args, kwargs

    def method(self, node: ast.Call, target: ast.Attribute) -> Any:
        name = target.attr
        value = self.value(target.value)
        if not isinstance(value, torch.Tensor):
            raise self.error(
                node,
                f"`.{name}(…)` needs a tensor, not {kind_of(value)}",
                f"{name}(…)?" if name in words.FUNCTIONS else "",
            )
        args, kwargs = self.arguments(node)
        if name == "to" and not kwargs.get("dtype"):
            if len(args) != 1 or kwargs:
                raise self.error(node, "`.to(…)` takes one dtype or tensor here")
            if not isinstance(args[0], torch.Tensor):
                args = (to_dtype(args[0]),)
        if name == "bernoulli":
            return self.ops.function(name, (value, *args), kwargs)
        return self.ops.apply(
            name, getattr(torch.Tensor, name), (value, *args), kwargs, words.METHODS[name]
        )

    def factory(self) -> Factory:
        dtype, device = self.dtype, self.device
        if dtype is None or device is None:
            used = [self.env[name] for name in sorted(self.expression.names)]
            for tensor in bounds.tensors(used):
                device = device or tensor.device
                if dtype is None and tensor.is_floating_point():
                    dtype = tensor.dtype
        return Factory(self.generator, dtype or torch.float64, torch.device(device or "cpu"))

    def shown(self, node: ast.AST) -> str:
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        text = " ".join(self.expression.text[start:end].split())
        return f"`{text if len(text) <= 50 else text[:49] + '…'}`"

    def error(self, node: ast.AST, message: str, hint: str = "") -> ExpressionError:
        column = getattr(node, "col_offset", 0) + 1
        return ExpressionError(message, text=self.expression.text, column=column, hint=hint)


def _constant(name: str) -> Any:
    return words.CONSTANTS[name] if name in words.CONSTANTS else getattr(torch, name)


#: What torch and Python raise when an operation refuses its arguments.
_REFUSALS: frozenset[type] = frozenset(
    (
        *(ArithmeticError, AssertionError, AttributeError, FloatingPointError, IndexError),
        *(KeyError, LookupError, NotImplementedError, OverflowError, RuntimeError, TypeError),
        *(UnicodeError, ValueError, ZeroDivisionError, torch.linalg.LinAlgError),
    )
)


def _is_ours(error: Exception) -> bool:
    """Whether ``error`` says that an operation of the expression failed.

    An exception of a type of its own, such as that by which ``torch.utils.checkpoint`` stops a
    recomputation, is meant for whoever waits for it.
    """
    if type(error) is RuntimeError and "can't allocate memory" in error_text(error):
        return False
    return type(error) in _REFUSALS


def _version(tensor: torch.Tensor) -> int | None:
    """How often ``tensor`` was written to; None where torch doesn't count."""
    try:
        return tensor._version
    except RuntimeError:  # an inference tensor
        return None

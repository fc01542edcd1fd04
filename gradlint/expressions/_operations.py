"""Carries out operators and calls of an expression: checks sizes first, then calls torch."""

from __future__ import annotations

import ast
import functools
import importlib
import operator
from collections.abc import Callable
from typing import Any

import torch

from gradlint.expressions import _bounds as bounds
from gradlint.expressions import limits
from gradlint.expressions import vocabulary as words
from gradlint.expressions._factories import Factory
from gradlint.expressions.limits import kind_of

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_CUTTING = ("chunk", "split", "unbind")


class Operations:
    """The operators and functions of one evaluation, which counts what it makes.

    Args:
        factory: gives the maker of tensors when one is first needed.
    """

    def __init__(self, factory: Callable[[], Factory]) -> None:
        self.factory = factory
        self.total = 0
        self.work = 0

    def binary(self, kind: type, left: Any, right: Any) -> Any:
        if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
            for operand in (left, right):
                if isinstance(operand, (str, list, tuple, dict)):
                    raise TypeError(f"a tensor and {kind_of(operand)} have no common operators")
            if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
                if kind is ast.MatMult:
                    self.worked(bounds.check_matmul(left, right))
                else:
                    bounds.check_broadcast((left, right))
            return self.made(_BINARY[kind](left, right))
        if isinstance(left, str) and kind is ast.Mod:
            raise TypeError("formatting a string is not allowed in an expression")
        if kind is ast.Mult:
            for sequence, times in ((left, right), (right, left)):
                if isinstance(sequence, (str, list, tuple)) and isinstance(times, int):
                    limits.check_repeat(limits.items(sequence), times)
        if kind is ast.Pow:
            limits.check_power(left, right)
        if kind is ast.LShift and isinstance(left, int) and isinstance(right, int):
            limits.check_bits(left.bit_length() + right)
        return plain(_BINARY[kind](left, right))

    def function(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in words.FACTORIES:
            for value in (args, *kwargs.values()):
                limits.check_items(value)
            return self.made(self.factory().make(name, args, kwargs))
        if name in words.BUILTINS:
            return plain(_builtin(name, args))
        numbers = not any(True for _ in bounds.tensors((args, tuple(kwargs.values()))))
        if numbers and name == "pow" and len(args) == 2:
            return self.binary(ast.Pow, *args)
        if numbers and name in words.MATH and not kwargs:
            if name == "round":
                _check_digits(*args[1:])
            return plain(words.MATH[name](*args))
        if name == "sum" and args and isinstance(args[0], (list, tuple)) and not kwargs:
            for part in args[0]:
                if isinstance(part, (str, list, tuple)):
                    raise TypeError(f"sum takes numbers or tensors, not {kind_of(part)}")
            return functools.reduce(lambda a, b: self.binary(ast.Add, a, b), args[0])
        if name in words.PAIRS or (numbers and args and isinstance(args[0], (int, float))):
            args = tuple(self.lifted(value) for value in args[:2]) + args[2:]
        growing = name in words.GROWING
        home = words.GROWING[name] if growing else words.SAME[name]
        return self.apply(name, _found(home, name), args, kwargs, growing)

    def apply(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        growing: bool,
    ) -> Any:
        operands = [*args, *kwargs.values()]
        bounds.check_statistics(name, args, kwargs)
        self.worked(bounds.costly(name, args))
        if growing:
            work = bounds.check_growth(name, args, kwargs)
            self.worked(bounds.predicted(function, args, kwargs) if work is None else work)
        elif name in _CUTTING and args and isinstance(args[0], torch.Tensor):
            bounds.check_pieces(name, *args, **kwargs)
        else:
            bounds.check_broadcast(operands)
        return self.made(function(*args, **kwargs), view=name in words.VIEWS)

    def lifted(self, value: Any) -> Any:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            made = self.factory()
            return torch.tensor(value, dtype=made.dtype, device=made.device)
        return value

    def worked(self, multiplications: int) -> None:
        """Count the multiplications of one operation, before it runs."""
        self.work += multiplications
        limits.check_work(self.work)

    def made(self, value: Any, *, view: bool = False) -> Any:
        """``value``, with its elements counted."""
        for tensor in bounds.tensors(value):
            limits.check_elements(tensor.numel())
            if tensor.numel() == 0:
                limits.check_size(tensor.shape)
            if not view:
                self.total += tensor.numel()
        if self.total > limits.MAX_TOTAL:
            raise limits.TooLarge(
                f"all tensors together have {self.total:,} elements; at most "
                f"{limits.MAX_TOTAL:,} are allowed"
            )
        return value


@functools.cache
def _found(home: str, name: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(home), name)


def to_dtype(value: Any) -> torch.dtype:
    if isinstance(value, torch.dtype):
        return value
    if isinstance(value, str) and value.removeprefix("torch.") in words.DTYPES:
        return getattr(torch, value.removeprefix("torch."))
    shown = repr(value[:40]) if isinstance(value, str) else kind_of(value)
    raise TypeError(f"{shown} is not a dtype; dtypes are {', '.join(sorted(words.DTYPES))}")


def _builtin(name: str, args: tuple[Any, ...]) -> Any:
    if name == "range":
        made = range(*args)
        if len(made) > limits.MAX_ITEMS:
            raise limits.TooLarge(f"range of {len(made):,}; at most {limits.MAX_ITEMS:,}")
        return list(made)
    (value,) = args
    if name in ("list", "tuple"):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{name}(…) takes a list or tuple, not {kind_of(value)}")
        return list(value) if name == "list" else tuple(value)
    if name == "len":
        return len(value)
    if isinstance(value, str):
        raise TypeError(f"{name}(…) takes a number, not a string")
    return {"bool": bool, "float": float, "int": int}[name](value)


def _check_digits(digits: Any = None) -> None:
    # Python computes 10**digits; no float has more than some 330 digits on either side.
    if isinstance(digits, int) and abs(digits) > 400:
        raise limits.TooLarge(f"rounding to {digits:,} digits; at most 400 are allowed")


def plain(value: Any) -> Any:
    if isinstance(value, int):
        limits.check_bits(value.bit_length())
    return limits.check_items(value)

"""Detect arguments that Functions change in place, and those that they declare as changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from torch.autograd.function import FunctionCtx, _SingleLevelFunction

from gradlint.model.sample import positional_names
from gradlint.ops.backed import is_backed
from gradlint.trace.applied import (
    applies_in_cpp,
    apply_replaced,
    forward_signature,
    methods_replaced,
    sets_up_context,
)
from gradlint.trace.graph import memory_of


@dataclass(frozen=True)
class ArgumentWritten:
    """A tensor that a Function's forward changed.

    Args:
        function: the Function.
        position: position of the argument.
        tensor: the argument itself.
        was: a copy from before the call; now: a copy from after it.
    """

    function: type
    position: int
    tensor: torch.Tensor
    was: torch.Tensor
    now: torch.Tensor


@contextmanager
def written_arguments() -> Iterator[list[ArgumentWritten]]:
    """Arguments that calls of ``Function.apply`` in the body change, declared or not. Calls inside
    another Function's forward do not count."""
    found: list[ArgumentWritten] = []
    watched = _in_forward(found) if applies_in_cpp() else _in_apply(found)
    with watched:
        yield found


@contextmanager
def _in_apply(found: list[ArgumentWritten]) -> Iterator[None]:
    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        call = super(_SingleLevelFunction, cls).apply  # type: ignore[misc]
        if not torch.is_grad_enabled():
            return call(*args, **kwargs)
        with _compared(cls, args, found):
            return call(*args, **kwargs)

    with apply_replaced(apply):
        yield


@contextmanager
def _in_forward(found: list[ArgumentWritten]) -> Iterator[None]:
    running: list[type] = []

    def comparing(function: type, method: Callable[..., Any], _: str) -> Callable[..., Any]:
        @wraps(method)
        def compared(*args: Any, **kwargs: Any) -> Any:
            if running:
                return method(*args, **kwargs)
            running.append(function)
            try:
                given = args if sets_up_context(function) else args[1:]
                with _compared(function, given, found):
                    return method(*args, **kwargs)
            finally:
                running.pop()

        return compared

    with methods_replaced(("forward",), comparing):
        yield


@contextmanager
def _compared(function: type, args: Sequence[Any], found: list[ArgumentWritten]) -> Iterator[None]:
    before = [
        (k, arg, arg.detach().clone())
        for k, arg in enumerate(args)
        if _plain(arg) and is_backed(arg)
    ]
    yield
    with suppress(RuntimeError):  # dtypes that cannot be compared, which must not affect the op
        for position, arg, was in before:
            now = arg.detach() if is_backed(arg) else torch.full_like(was, math.nan)
            if now.shape == was.shape and not torch.equal(now, was):
                found.append(ArgumentWritten(function, position, arg, was, now.clone()))


@contextmanager
def marked_dirty() -> Iterator[set[int]]:
    """Addresses of the tensors that are passed to ``ctx.mark_dirty`` in the body."""
    dirty: set[int] = set()
    original = FunctionCtx.mark_dirty

    def mark_dirty(self: Any, *args: Any) -> None:
        for tensor in args:
            where = memory_of(tensor) if isinstance(tensor, torch.Tensor) else None
            if where is not None:
                dirty.add(where)
        original(self, *args)

    FunctionCtx.mark_dirty = mark_dirty  # type: ignore[method-assign]
    try:
        yield dirty
    finally:
        FunctionCtx.mark_dirty = original  # type: ignore[method-assign]


def argument_name(function: Any, position: int) -> str:
    """The name of ``forward``'s argument ``position``, ``ctx`` not counted."""
    names = positional_names(forward_signature(function), position + 1)
    return names[position] if position < len(names) else f"args[{position}]"


def _plain(value: Any) -> bool:
    return type(value) is torch.Tensor and value.layout == torch.strided and not value.is_nested

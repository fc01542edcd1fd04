"""Arguments that Functions write to, and those that they declare to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch

from gradlint.trace._graph import memory_of


@dataclass(frozen=True)
class ArgumentWritten:
    """A tensor that a Function's forward changed: what it is now, and what it was.

    Args:
        function: the Function.
        position: of the argument.
        tensor: the argument itself.
        was: a copy from before the call; now: one from after it.
    """

    function: type
    position: int
    tensor: torch.Tensor
    was: torch.Tensor
    now: torch.Tensor


@contextmanager
def written_arguments() -> Iterator[list[ArgumentWritten]]:
    """Arguments that calls of ``Function.apply`` in the body change, declared or not. Calls inside
    of another Function's forward are that one's own business."""
    from torch.autograd.function import _SingleLevelFunction

    found: list[ArgumentWritten] = []

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        call = super(_SingleLevelFunction, cls).apply  # type: ignore[misc]
        if not torch.is_grad_enabled():
            return call(*args, **kwargs)
        before = [(k, arg, arg.detach().clone()) for k, arg in enumerate(args) if _plain(arg)]
        returned = call(*args, **kwargs)
        with suppress(RuntimeError):  # dtypes that can't be compared; the op must not suffer
            for position, arg, was in before:
                now = arg.detach()
                if now.shape == was.shape and not torch.equal(now, was):
                    found.append(ArgumentWritten(cls, position, arg, was, now.clone()))
        return returned

    base: Any = _SingleLevelFunction
    missing = object()
    kept = base.__dict__.get("apply", missing)
    base.apply = classmethod(apply)
    try:
        yield found
    finally:
        if kept is missing:
            del base.apply
        else:
            base.apply = kept


@contextmanager
def marked_dirty() -> Iterator[set[int]]:
    """Memory of the tensors that ``ctx.mark_dirty`` names in the body."""
    from torch.autograd.function import FunctionCtx

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
    from gradlint.inputs import positional_names
    from gradlint.trace._record import forward_signature

    names = positional_names(forward_signature(function), position + 1)
    return names[position] if position < len(names) else f"args[{position}]"


def _plain(value: Any) -> bool:
    return type(value) is torch.Tensor and value.layout == torch.strided and not value.is_nested

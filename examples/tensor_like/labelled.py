"""A Tensor subclass that carries a unit. Right, and as it goes wrong.

`gradlint overrides examples/tensor_like/labelled.py:Labelled` audits it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class Labelled(Tensor):
    """A tensor with a unit, which results take from the first argument that has one."""

    unit: str = ""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        found = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(found, Labelled):
            found.unit = next((a.unit for a in args if isinstance(a, Labelled)), "")
        return found


def labelled(tensor: Tensor, unit: str) -> Labelled:
    """``tensor`` with a unit; gradients flow through."""
    found = tensor.as_subclass(Labelled)
    found.unit = unit
    return found


class WrongLabelled(Tensor):
    """Unwraps to compute, and forgets to wrap again: unit and type are lost."""

    unit: str = ""

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        plain = [a.as_subclass(Tensor) if isinstance(a, WrongLabelled) else a for a in args]
        with torch._C.DisableTorchFunctionSubclass():
            return func(*plain, **(kwargs or {}))

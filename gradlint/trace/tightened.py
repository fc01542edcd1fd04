"""An iterative forward, run with tighter tolerances than its own.

A loop that ends at a tolerance compares a measure of its error with a small number: `err < 1e-6`,
`float(err) > tol`, `err < tol * scale`, `torch.allclose(new, old)`. Under :class:`Tightened`, such
comparisons see the error some times larger, so that the loop ends later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: Numbers up to here may be tolerances or measures of an error (heuristic: a larger one that leaves
#: a tensor is a size, a step, or an error far from the end of its loop).
SMALL = 0.1

_COMPARISONS = ("lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal")
_NUMBERS = ("item", "__float__")
_CLOSE = {"rtol": 1e-5, "atol": 1e-8}


class TooLong(RuntimeError):
    """The op did not end within the calls that it was allowed."""


class Tightened(TorchFunctionMode):
    """Counts calls of PyTorch's functions, and tightens tolerances.

    Args:
        factor: by which errors look larger; 1 to count only.
        left: in a comparison of two tensors, whether the left one is the error.
        most: calls after which the op is ended by :class:`TooLong`; None for any number.
        backward: whether what backward calls is counted and tightened, too.

    Attributes:
        calls: of functions of PyTorch, by the op or by what it calls.
        changed: how many comparisons and numbers were changed.
    """

    def __init__(
        self,
        factor: float = 1.0,
        *,
        left: bool = True,
        most: int | None = None,
        backward: bool = False,
    ) -> None:
        super().__init__()
        self.calls = self.changed = 0
        self._factor, self._left, self._most = factor, left, most
        self._backward = backward

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        self.calls += 1
        if self._most is not None and self.calls > self._most:
            raise TooLong(f"more than {self._most} calls")
        name = getattr(func, "__name__", "")
        if func is torch.autograd.grad and self._backward:
            with self, _by_the_engine():
                return func(*args, **kwargs)
        if self._factor == 1.0:
            return func(*args, **kwargs)
        if name in _NUMBERS:
            found = func(*args, **kwargs)
            small = isinstance(found, float) and abs(found) <= SMALL
            self.changed += small
            return found * self._factor if small else found
        if name.strip("_") in _COMPARISONS and len(args) == 2:
            return self._compared(func, *args)
        if name in ("allclose", "isclose"):
            tighter = {k: kwargs.get(k, v) / self._factor for k, v in _CLOSE.items()}
            self.changed += 1
            return func(*args, **{**kwargs, **tighter})
        return func(*args, **kwargs)

    def _compared(self, func: Callable[..., Any], one: Any, other: Any) -> Any:
        if isinstance(other, float):
            small = 0.0 < other <= SMALL
            self.changed += small
            return func(one, other / self._factor if small else other)
        tensors = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
        if not tensors or not one.is_floating_point() or one.numel() * other.numel() != 1:
            return func(one, other)
        self.changed += 1
        if self._left:
            return func(one * self._factor, other)
        return func(one, other * self._factor)


@contextmanager
def _by_the_engine() -> Iterator[None]:
    """``torch.autograd.grad`` runs under the mode that is entered, and does not hand itself to it:
    a mode is left while it handles a call, and so is what backward calls."""
    space: dict[str, Any] = vars(torch.autograd)
    asked = space["has_torch_function"]
    space["has_torch_function"] = lambda _: False
    try:
        yield
    finally:
        space["has_torch_function"] = asked


class LeavesGraph(TorchFunctionMode):
    """Notes whether numbers leave their tensors, where no gradient follows them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = False

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        differentiable = any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in args)
        if differentiable and name in (*_NUMBERS, "tolist", "numpy", "__array__", "data_ptr"):
            self.seen = True
        return func(*args, **(kwargs or {}))

"""Axes that forward cuts into two halves, which it exchanges.

A rotation of pairs that lie half an axis apart is written as ``cat([-b, a])`` of the halves a and b
of x. An axis of odd size is cut as well, into parts of which one is larger by one, and their
exchange then no longer puts each element where its partner was: forward computes something else.
Halves that are exchanged as they are, as a cyclic shift does, are right at odd sizes, too.
"""

from __future__ import annotations

from typing import Any

import torch

from gradlint.ops.dispatch_mode import DispatchMode

_SPLITTING = frozenset({"split", "split_with_sizes", "unsafe_split", "unsafe_split_with_sizes"})


class ExchangedHalves(DispatchMode):
    """Notes the sizes of axes that are cut into two parts, of which one is larger by one and one is
    changed before they are joined the other way round.

    Attributes:
        sizes: of the axes as a whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sizes: set[int] = set()
        #: Axis, its size, where a part begins, and its size.
        self._parts: set[tuple[int, int, int, int]] = set()
        self._alive: dict[int, torch.Tensor] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = self.through(func, args, kwargs)
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        if name == "slice":
            self._note(args[0], [result], args[2] if len(args) > 2 else 0)
        elif name in _SPLITTING and len(result) == 2:
            self._note(args[0], result, 0)
        elif name == "cat" and len(args[0]) == 2:
            self._join(args[0], result)
        return result

    def _note(self, whole: torch.Tensor, parts: list[torch.Tensor], start: int | None) -> None:
        place = start or 0
        for part in parts:
            axis = _only_difference(whole, part)
            if axis is None:
                return
            size = whole.shape[axis]
            place += size if place < 0 else 0
            self._parts.add((axis, size, place, part.shape[axis]))
            self._alive[id(part)] = part
            place += part.shape[axis]

    def _join(self, parts: list[torch.Tensor], whole: torch.Tensor) -> None:
        axis = _only_difference(whole, parts[0])
        if axis is None or all(id(part) in self._alive for part in parts):
            return
        first, last = (part.shape[axis] for part in parts)
        size = first + last
        cut = {(axis, size, 0, last), (axis, size, last, first)}
        if abs(first - last) == 1 and cut <= self._parts:
            self.sizes.add(size)


def _only_difference(whole: torch.Tensor, part: torch.Tensor) -> int | None:
    """The axis along which ``part`` is smaller, if it is one alone."""
    if whole.dim() != part.dim():
        return None
    axes = [k for k in range(whole.dim()) if whole.shape[k] != part.shape[k]]
    return axes[0] if len(axes) == 1 else None

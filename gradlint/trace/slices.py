"""How long the slices are that a forward takes from somewhere to the end of an axis."""

from __future__ import annotations

from typing import Any

from gradlint.ops.dispatch_mode import DispatchMode


class Slices(DispatchMode):
    """Notes the slices that begin at a number counted from the front and are not cut off behind.

    Attributes:
        lengths: of each slice, in the order of taking.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        found = self.through(func, args, kwargs or {})
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        if name == "slice" and len(args) > 2:
            axis, start = args[1], args[2]
            size = args[0].shape[axis]
            if isinstance(start, int) and 0 < start < size and found.shape[axis] == size - start:
                self.lengths.append(size - start)
        return found

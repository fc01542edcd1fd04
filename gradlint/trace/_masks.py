"""Masks that the user's own code makes or uses: whether elements of them are true, and false."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_ORDER = ("gt", "ge", "lt", "le", "eq", "ne", "greater", "greater_equal", "less", "less_equal")

#: Functions whose result is the mask.
_COMPARE = frozenset((*_ORDER, *(f"__{name}__" for name in _ORDER), "not_equal"))

#: Functions that take a mask, with its position among their arguments.
_TAKE = {
    "where": 0,
    "masked_fill": 1,
    "masked_fill_": 1,
    "masked_select": 1,
    "masked_scatter": 1,
    "masked_scatter_": 1,
}

#: Functions of masks whose parts were compared: the parts tell more.
_COMBINE = frozenset(
    ("__and__", "__or__", "__invert__", "__xor__", "logical_and", "logical_or", "logical_not")
)

#: Levels of torch's own Python code between an operator such as ``==`` and the user's line.
_LEVELS = 3


class Masks(TorchFunctionMode):
    """Notes the masks that the user's own functions make or use while this mode is active.

    Masks of one element are left out: what depends on them is a branch.

    Args:
        wanted: whether a function, given by its code, is the user's own.

    Attributes:
        outcomes: function and offset of the instruction → the outcomes that elements had.
    """

    def __init__(self, wanted: Callable[[CodeType], bool]) -> None:
        super().__init__()
        self.outcomes: dict[tuple[CodeType, int], set[bool]] = {}
        self._wanted = wanted
        self._noted: dict[int, torch.Tensor] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call ``func``, and note the mask that it makes or takes."""
        found = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in _COMPARE:
            self._note(found, sys._getframe(1))
        elif name in _TAKE and len(args) > _TAKE[name]:
            self._note(args[_TAKE[name]], sys._getframe(1))
        elif name in _COMBINE and any(id(part) in self._noted for part in args):
            self._noted[id(found)] = found
        return found

    @property
    def size(self) -> int:
        """How much was noted: it grows with all that is new."""
        return len(self.outcomes) + sum(map(len, self.outcomes.values()))

    def forget(self) -> None:
        """Release the masks, which are kept to tell those that were noted already."""
        self._noted.clear()

    def _note(self, mask: Any, frame: FrameType | None) -> None:
        if not isinstance(mask, torch.Tensor) or mask.dtype is not torch.bool:
            return
        if id(mask) in self._noted:
            return
        frame = self._of_the_user(frame)
        if frame is None:
            return
        try:
            if mask.numel() < 2:
                return
            outcomes = {outcome for outcome in (True, False) if bool((mask == outcome).any())}
        except (RuntimeError, NotImplementedError):  # no values: under vmap, or on "meta"
            return
        self._noted[id(mask)] = mask
        self.outcomes.setdefault((frame.f_code, frame.f_lasti), set()).update(outcomes)

    def _of_the_user(self, frame: FrameType | None) -> FrameType | None:
        for _ in range(_LEVELS):
            if frame is None or self._wanted(frame.f_code):
                return frame
            if frame.f_globals.get("__name__", "").partition(".")[0] != "torch":
                return None
            frame = frame.f_back
        return None

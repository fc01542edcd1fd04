"""Where forward runs out of a size: clamps to an empty range, indices that fall below zero, and
systems of equations that have no single solution.

Positions or a window of no elements are left out: a sum over nothing is well defined, and often
treated with care.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

import torch

from gradlint.ops.dispatch_mode import DispatchMode

#: ATen operators (without overloads and trailing underscores) by what they do: clamp to a range,
#: pick elements by a tensor, and by numbers at these positions.
_CLAMPING = frozenset(("clamp", "clip"))
_PICKING = frozenset(("index", "_unsafe_index", "index_put", "_index_put_impl", "take", "put"))
_SELECTING = {"select": (2,), "slice": (2, 3)}

#: ATen operators that solve with their first argument, a matrix, or invert it.
SOLVE = "solve"
_SOLVING = frozenset(("_linalg_solve_ex", "linalg_inv_ex", "linalg_lu_factor_ex"))

#: A matrix whose smallest singular value is below this many roundings of its largest one, for each
#: of its rows, is singular (heuristic: what elimination leaves of a rank that is missing).
_ROUNDINGS = 16.0

#: What forward does at one place of its code: the kind of operation, the code and the offset.
Step = tuple[str, CodeType | None, int]

_TORCH = os.path.dirname(torch.__file__) + os.sep


class SizeEdges(DispatchMode):
    """Notes clamps to a range, elements that are picked and matrices that are solved with, each
    with its place in the code.

    Attributes:
        steps: all of these.
        beyond: those whose range ends before it begins, that count from the end, or whose matrix is
            singular to working precision: elimination meets a rounding there in place of zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: set[Step] = set()
        self.beyond: set[Step] = set()

    def ran_out(self, before: SizeEdges) -> bool:
        """Whether a place ran out of the size that did not do so in ``before``. One that did not
        run there is a branch for such sizes, which are meant then."""
        return not self.beyond.isdisjoint(before.steps - before.beyond)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "").rstrip("_")
        if name in _CLAMPING:
            low, high = (_argument(args, kwargs, k, word) for k, word in ((1, "min"), (2, "max")))
            if low is not None and high is not None:
                self._note("clamp", _exceeds(low, high))
        elif name in _PICKING:
            self._note("pick", any(_is_negative(index) for index in _indices(args[1])))
        elif name in _SELECTING:
            ends = [args[k] for k in _SELECTING[name] if k < len(args)]
            self._note(name, any(type(end) is int and end < 0 for end in ends))
        elif name in _SOLVING:
            self._note(SOLVE, _is_singular(args[0]))
        return func(*args, **kwargs)

    def _note(self, kind: str, beyond: bool) -> None:
        step = (kind, *_place(sys._getframe(2)))
        self.steps.add(step)
        if beyond:
            self.beyond.add(step)


def _place(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """Where the first frame is that is not PyTorch's."""
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH):
        frame = frame.f_back
    return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, word: str) -> Any:
    return args[place] if place < len(args) else kwargs.get(word)


def _exceeds(low: Any, high: Any) -> bool:
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        low, high = torch.as_tensor(low), torch.as_tensor(high)
        return bool((low.to(high.device) > high).any())
    return bool(low > high)


def _is_singular(matrices: torch.Tensor) -> bool:
    if not matrices.numel() or not bool(matrices.isfinite().all()):
        return False
    values = torch.linalg.svdvals(matrices.detach())
    least = _ROUNDINGS * matrices.shape[-1] * torch.finfo(values.dtype).eps
    return bool((values[..., -1] <= least * values[..., 0]).any())


def _indices(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _is_negative(index: Any) -> bool:
    if not isinstance(index, torch.Tensor) or index.dtype in (torch.bool, torch.uint8):
        return False
    return index.numel() > 0 and bool((index < 0).any())

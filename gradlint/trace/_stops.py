"""Where forward stops gradients: ``detach``, ``.data``, ``torch.no_grad``."""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import gradlint

_DETACHES = (torch.Tensor.detach, torch.detach, torch.Tensor.data.__get__)  # type: ignore[attr-defined]

#: What ``torch.no_grad`` and its kin call.
_SWITCH = "_set_grad_enabled"

_TORCH, _GRADLINT = (os.path.dirname(module.__file__ or "") for module in (torch, gradlint))


class GradientStops(TorchFunctionMode):
    """Notes every stop of a gradient that the user's code makes.

    Args:
        release: let gradients through instead.

    Attributes:
        lines: the lines of user's code that stop gradients, each once.
    """

    def __init__(self, *, release: bool = False) -> None:
        super().__init__()
        self.lines: list[traceback.FrameSummary] = []
        self._release = release

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        detaches = any(func == known for known in _DETACHES)
        switches = getattr(func, "__name__", "") == _SWITCH and not args[0]
        frame = _caller() if detaches or switches else None
        if frame is not None:
            line = _summary(frame)
            if line not in self.lines:
                self.lines.append(line)
            if self._release:
                return args[0] if detaches else None
        return func(*args, **(kwargs or {}))


def _caller() -> FrameType | None:
    """The nearest frame outside of torch; None where that is gradlint's own."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_TORCH + os.sep):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(_GRADLINT + os.sep):
        return None
    return frame


def _summary(frame: FrameType) -> traceback.FrameSummary:
    """The call that ``frame`` is at, with its columns (Python 3.11 and later)."""
    code = frame.f_code
    place: dict[str, Any] = {}
    if sys.version_info >= (3, 11):
        found = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
        place = dict(zip(("end_lineno", "colno", "end_colno"), found[1:], strict=True))
    return traceback.FrameSummary(code.co_filename, frame.f_lineno, code.co_name, **place)

"""What changes when functions that round are taken as something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


def _named(*names: str) -> frozenset[Any]:
    return frozenset(getattr(owner, name) for owner in (torch, torch.Tensor) for name in names)


#: Functions that round.
ROUNDING = _named("round", "floor", "ceil", "trunc", "fix")

#: Functions that return signs.
SIGNS = _named("sign", "sgn")

#: Functions that compare.
COMPARING = _named("gt", "ge", "lt", "le", "greater", "greater_equal", "less", "less_equal")

#: Functions that keep what was rounded within bounds.
_BOUNDING = _named("clamp", "clip")


class RoundingAsIdentity(TorchFunctionMode):
    """Gradients pass through functions that round, as if these returned what they are given.

    Args:
        bounds_first: whether what is rounded and then clamped gets gradients where it lies within
            the bounds before it is rounded.
        signs: what signs are taken as: nothing else, the "identity", or it between -1 and 1
            ("hardtanh").

    Attributes:
        seen: whether any was taken as the identity.
        rounded: whether it was one that rounds.
    """

    def __init__(self, bounds_first: bool = False, signs: str = "") -> None:
        super().__init__()
        self.seen = False
        self.rounded = False
        self._bounds_first = bounds_first
        self._signs = signs
        # Kept, so that no number is given twice.
        self._rounded: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._compared: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def _chosen(self, func: Any, args: Any) -> torch.Tensor | None:
        """The tensor of which a choice between 1 and -1 is the sign: ``where(x >= 0, 1.0, -1.0)``,
        or between tensors of these."""
        if func is not torch.where or len(args) != 3 or id(args[0]) not in self._compared:
            return None
        with torch._C.DisableTorchFunction():
            ends = [torch.as_tensor(item).unique().tolist() for item in args[1:]]
        return self._compared[id(args[0])][1] if ends == [[1.0], [-1.0]] else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        value = func(*args, **(kwargs or {}))
        before = args[0] if args else None
        if not isinstance(before, torch.Tensor):
            return value
        if func in ROUNDING and before.requires_grad:
            self.seen = self.rounded = True
            passed = before + (value - before).detach()
            self._rounded[id(passed)] = passed, before
            return passed
        if self._signs and func in COMPARING and before.requires_grad and args[1:] == (0,):
            self._compared[id(value)] = value, before
        signed = before if func in SIGNS else self._chosen(func, args)
        if self._signs and signed is not None and signed.requires_grad:
            self.seen = True
            line = signed.clamp(-1.0, 1.0) if self._signs == "hardtanh" else signed
            return line + (value - line).detach()
        if self._bounds_first and func in _BOUNDING and id(before) in self._rounded:
            bounded = func(self._rounded[id(before)][1], *args[1:], **(kwargs or {}))
            return bounded + (value - bounded).detach()
        return value


class RoundingOmitted(TorchFunctionMode):
    """Functions that round return what they are given.

    Args:
        is_inside: asked at each call whether this is meant.
    """

    def __init__(self, is_inside: Callable[[], bool]) -> None:
        super().__init__()
        self._is_inside = is_inside

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in ROUNDING and args and self._is_inside():
            return args[0].clone()
        return func(*args, **(kwargs or {}))

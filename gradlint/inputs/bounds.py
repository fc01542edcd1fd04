"""Values kept within the bounds that hold between arguments: lengths of texts are at most those of
sounds, and these are at most the size of an axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, TypeVar

import torch

from gradlint.model.related import Bound, Side

_Key = TypeVar("_Key", str, int)

#: Times that all bounds are gone through: one may move what another one has moved.
_ROUNDS = 3


def kept(
    bounds: tuple[Bound, ...], tensors: Mapping[_Key, torch.Tensor]
) -> dict[_Key, torch.Tensor]:
    """Those of ``tensors`` that do not keep ``bounds``, with values that do; as they are where that
    can't be had. Of two tensors that are in the wrong order, the elements change places; integers
    beyond a size or a number become the nearest one within it."""
    found = dict(tensors)
    for _ in range(_ROUNDS):
        for bound in bounds:
            _keep(bound, found)
    return {key: value for key, value in found.items() if value is not tensors[key]}


def _keep(bound: Bound, found: dict[Any, torch.Tensor]) -> None:
    less, more = (side_value(side, found) for side in (bound.less, bound.more))
    gap = int(bound.strict)
    if isinstance(less, torch.Tensor) and isinstance(more, torch.Tensor):
        _exchange(bound, less, more, found)
    elif _has_integers(less) and isinstance(more, int) and int(less.max()) > more - gap:
        _put(bound.less, less.clamp(max=more - gap), less, found)
    elif _has_integers(more) and isinstance(less, int) and int(more.min()) < less + gap:
        _put(bound.more, more.clamp(min=less + gap), more, found)


def _exchange(
    bound: Bound, less: torch.Tensor, more: torch.Tensor, found: dict[Any, torch.Tensor]
) -> None:
    """Let elements in the wrong order change places."""
    if less.shape != more.shape or less.dtype != more.dtype or less is more or less.is_complex():
        return
    gap = int(bound.strict) if _has_integers(less) else 0
    if bool((less + gap <= more).all()):
        return
    low, high = torch.minimum(less, more), torch.maximum(less, more)
    _put(bound.less, low, less, found)
    _put(bound.more, torch.maximum(high, low + gap) if gap else high, more, found)


def side_value(side: Side, found: Mapping[Any, torch.Tensor]) -> torch.Tensor | int | None:
    """The values, the size or the number that a side of a bound is; None where it is unknown."""
    if side.of is None:
        return side.number
    tensor = found.get(side.of)
    if tensor is None or side.axis is None:
        return tensor if tensor is None or tensor.layout == torch.strided else None
    return int(tensor.shape[side.axis]) if side.axis < tensor.dim() else None


def _put(
    side: Side, value: torch.Tensor, old: torch.Tensor, found: dict[Any, torch.Tensor]
) -> None:
    made = value.detach().clone().requires_grad_(old.requires_grad)
    found[side.of] = made


def _has_integers(value: torch.Tensor | int | None) -> TypeGuard[torch.Tensor]:
    if not isinstance(value, torch.Tensor) or not value.numel():
        return False
    return not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)

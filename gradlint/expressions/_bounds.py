"""Computes how many elements an operation will make, before it runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradlint.expressions import limits
from gradlint.expressions.limits import TooLarge, check_elements, check_size, items


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples and lists; dicts and other objects hold none here."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


def check_broadcast(values: Any) -> None:
    """Refuse tensors that broadcast to something too large."""
    shapes = [tuple(tensor.shape) for tensor in tensors(values)]
    if len(shapes) < 2 or all(shape == shapes[0] for shape in shapes):
        return
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    if any(len(set(lengths) - {1}) > 1 for lengths in zip(*padded, strict=True)):
        return  # They don't broadcast: the result can't be larger than the largest.
    check_size([max(lengths) for lengths in zip(*padded, strict=True)])


def check_matmul(left: torch.Tensor, right: torch.Tensor) -> None:
    """Refuse a matrix product whose result or broadcast operands are too large."""
    a, b = tuple(left.shape), tuple(right.shape)
    if not a or not b:
        return
    rows, inner = (a[-2] if len(a) > 1 else 1), a[-1]
    columns = b[-1] if len(b) > 1 else 1
    batch_a, batch_b = a[:-2], b[:-2]
    rank = max(len(batch_a), len(batch_b))
    batch = 1
    for x, y in zip(
        (1,) * (rank - len(batch_a)) + batch_a, (1,) * (rank - len(batch_b)) + batch_b, strict=True
    ):
        batch *= max(x, y) if x and y else 0
    check_elements(batch * max(rows * columns, rows * inner, inner * columns))


def check_index(value: torch.Tensor, index: Any) -> None:
    """Refuse ``value[index]`` where index tensors would blow it up."""
    parts = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(part, (torch.Tensor, list)) for part in parts):
        return
    kept = 1
    picked = 1
    axis = 0
    used = sum(_consumed(part) for part in parts)
    for part in parts:
        if part is Ellipsis:
            step = max(value.ndim - used, 0)
            kept *= math.prod(value.shape[axis : axis + step])
        elif isinstance(part, slice):
            step = 1
            kept *= math.prod(value.shape[axis : axis + step])
        elif isinstance(part, torch.Tensor):
            step = _consumed(part)
            picked *= max(part.numel(), 1)
        elif isinstance(part, list):
            step = 1
            picked *= max(items(part), 1)
        else:
            step = _consumed(part)
        axis += step
    kept *= math.prod(value.shape[axis:])
    # Index tensors broadcast together: the product of their sizes is an upper bound.
    check_elements(kept * picked)


def _consumed(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, torch.Tensor) and part.dtype == torch.bool:
        return part.ndim
    return 1


def check_pieces(value: torch.Tensor, name: str, args: tuple[Any, ...], dim: int) -> None:
    """Refuse to cut a tensor into too many pieces: each is an object of its own."""
    length = value.shape[dim] if value.ndim else 1
    pieces = length
    if args and isinstance(args[0], int) and name != "unbind":
        pieces = min(length, args[0]) if name == "chunk" else length // max(args[0], 1) + 1
    if pieces > limits.MAX_ITEMS:
        raise TooLarge(f"it would make {pieces:,} pieces; at most {limits.MAX_ITEMS:,} are allowed")


def check_predicted(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run ``function`` on tensors without memory (device "meta") and refuse it where any
    intermediate result is too large."""
    with torch.no_grad(), _Tally():
        function(*_meta(args), **_meta(kwargs))


class _Tally(TorchDispatchMode):
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tensors(result):
            check_elements(tensor.numel())
        return result


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_meta(part) for part in value)
    if isinstance(value, dict):
        return {key: _meta(part) for key, part in value.items()}
    return value

"""Computes how many elements an operation will make, before it runs.

Functions with a simple formula have one at the end of this file. The others are run on tensors
without memory, which the first time imports parts of torch that take a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
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


# -- functions whose result has a formula ----------------------------------------------------------


def check_growth(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Refuse ``name(*args, **kwargs)`` where it is too large; False where there is no formula
    for these arguments."""
    check = _CHECKS.get(name)
    if check is None:
        return False
    try:
        return check(*args, **kwargs)
    except TooLarge:
        raise
    except Exception:
        return False  # Wrong arguments: the error of torch explains them better.


def _joined(tensors: Any, *args: Any, **kwargs: Any) -> bool:
    check_elements(sum(tensor.numel() for tensor in tensors))
    return True


def _block_diag(*tensors: Tensor) -> bool:
    rows = sum(tensor.shape[-2] if tensor.ndim > 1 else 1 for tensor in tensors)
    columns = sum(tensor.shape[-1] if tensor.ndim else 1 for tensor in tensors)
    check_size((rows, columns))
    return True


def _product(*tensors: Any) -> bool:
    check_size([tensor.numel() for tensor in tensors])
    return True


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    check_size((*input.shape[:-1], weight.shape[0] if weight.ndim > 1 else 1))
    return True


def _added(input: Tensor, first: Tensor, second: Tensor, **kwargs: Any) -> bool:
    check_matmul(first, second)
    return True


def _matmul(first: Tensor, second: Tensor) -> bool:
    check_matmul(first, second)
    return True


def _inner(first: Tensor, second: Tensor) -> bool:
    check_size((*first.shape[:-1], *second.shape[:-1]))
    return True


def _diagonal(input: Tensor, offset: int = 0, *args: Any, **kwargs: Any) -> bool:
    length = input.shape[-1] if input.ndim else 1
    offset = kwargs.get("diagonal", kwargs.get("offset", offset))
    check_size((*input.shape[:-1], length + abs(offset), length + abs(offset)))
    return True


def _diag(input: Tensor, diagonal: int = 0) -> bool:
    return _diagonal(input, diagonal) if input.ndim < 2 else True


def _diagflat(input: Tensor, offset: int = 0) -> bool:
    return _diagonal(input.reshape(-1), offset)


def _einsum(equation: str, *operands: Any) -> bool:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    left, _, right = equation.replace(" ", "").partition("->")
    labels = left.split(",")
    if "." in equation or "->" not in equation or len(labels) != len(operands):
        return False
    sizes: dict[str, int] = {}
    for names, tensor in zip(labels, operands, strict=True):
        for name, size in zip(names, tensor.shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    # Contracted from left to right: after each step only labels that are still needed are kept.
    kept = set(labels[0])
    for step, names in enumerate(labels[1:], 2):
        wanted = set(right).union(*labels[step:])
        kept = (kept | set(names)) & wanted
        check_size([sizes[name] for name in kept])
    return True


def _one_hot(tensor: Tensor, num_classes: int = -1) -> bool:
    if num_classes < 0:
        raise TooLarge("one_hot needs the number of classes: one_hot(index, K)")
    check_size((tensor.numel(), num_classes))
    return True


def _pad(input: Tensor, pad: Any, *args: Any, **kwargs: Any) -> bool:
    shape = list(input.shape)
    for axis in range(len(pad) // 2):
        shape[-1 - axis] += max(pad[2 * axis], 0) + max(pad[2 * axis + 1], 0)
    check_size(shape)
    return True


def _repeat(input: Tensor, *repeats: Any, dims: Any = None) -> bool:
    given = dims if dims is not None else repeats
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    check_size((input.numel(), *given))
    return True


def _repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None) -> bool:
    if not isinstance(repeats, int):
        raise TooLarge("repeat_interleave takes a whole number of repeats here")
    check_size((input.numel(), repeats))
    return True


def _index_select(input: Tensor, dim: int, index: Tensor) -> bool:
    check_size((input.numel() // max(input.shape[dim], 1), index.numel()))
    return True


def _embedding(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> bool:
    check_size((input.numel(), weight.shape[-1]))
    return True


def _new(input: Tensor, *size: Any, **kwargs: Any) -> bool:
    given = size[0] if size and isinstance(size[0], (list, tuple)) else size
    check_size(kwargs.get("size", given))
    return True


def _distances(x1: Tensor, x2: Tensor, *args: Any, **kwargs: Any) -> bool:
    check_matmul(x1, x2.mT)
    return True


def _attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kw: Any) -> bool:
    check_matmul(query, key.mT)
    check_broadcast((query[..., :1, :1], key[..., :1, :1], value))
    return True


def _twice(input: Tensor) -> bool:
    check_size((input.numel(), 2))
    return True


def _cross(*args: Any, **kwargs: Any) -> bool:
    check_broadcast((*args, *kwargs.values()))
    return True


_CHECKS: dict[str, Callable[..., bool]] = {
    **dict.fromkeys(("cat", "concat", "hstack", "vstack", "stack"), _joined),
    **dict.fromkeys(("outer", "kron", "meshgrid"), _product),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm"), _added),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv"), _matmul),
    **dict.fromkeys(("repeat", "tile"), _repeat),
    **dict.fromkeys(("new_full", "new_ones", "new_zeros"), _new),
    **dict.fromkeys(("view_as_complex", "view_as_real"), _twice),
    "block_diag": _block_diag,
    "cdist": _distances,
    "cross": _cross,
    "diag": _diag,
    "diag_embed": _diagonal,
    "diagflat": _diagflat,
    "einsum": _einsum,
    "embedding": _embedding,
    "index_select": _index_select,
    "inner": _inner,
    "linear": _linear,
    "one_hot": _one_hot,
    "pad": _pad,
    "repeat_interleave": _repeat_interleave,
    "scaled_dot_product_attention": _attention,
}

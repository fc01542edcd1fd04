"""Computes how large the result of a function will be, for those with a simple formula.

The other functions are run on tensors without memory, which the first time imports parts of torch
that take a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from gradlint.expressions._bounds import check_broadcast, check_matmul
from gradlint.expressions.limits import TooLarge, check_elements, check_size


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

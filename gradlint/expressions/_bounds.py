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

from gradlint.expressions import limits
from gradlint.expressions import vocabulary as words
from gradlint.expressions.limits import TooLarge, check_elements, check_size, items
from gradlint.ops.dispatch_mode import DispatchMode


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested tuples and lists; dicts and other objects hold none here."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            if isinstance(part, (torch.Tensor, list, tuple)):  # long lists hold numbers
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


def check_matmul(left: torch.Tensor, right: torch.Tensor) -> int:
    """Refuse a matrix product whose result or broadcast operands are too large.

    Returns the number of its multiplications.
    """
    a, b = tuple(left.shape), tuple(right.shape)
    if not a or not b:
        return 0
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
    return batch * rows * inner * columns


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
            if any(True for _ in tensors(part)):
                raise TypeError("a list that holds tensors can't be an index")
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


def check_pieces(name: str, value: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    """Refuse to cut a tensor into too many pieces: each is an object of its own."""
    position = 0 if name == "unbind" else 1
    dim = kwargs.get("dim", args[position] if len(args) > position else 0)
    pieces = length = value.shape[dim] if value.ndim else 1
    given = kwargs.get("chunks", args[0] if args else None)
    if name == "chunk" and isinstance(given, int):
        pieces = min(length, given)
    elif name == "split" and isinstance(given, int):
        pieces = length // max(given, 1) + 1
    elif name == "split" and isinstance(given, (list, tuple)):
        pieces = len(given)
    if pieces > limits.MAX_PIECES:
        raise TooLarge(
            f"it would make {pieces:,} pieces; at most {limits.MAX_PIECES:,} are allowed"
        )


def check_statistics(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a norm that would update running statistics: a formula writes to nothing."""
    if name not in _UPDATED_WHERE:
        return
    given = dict(zip(words.PARAMETERS[name], args, strict=False)) | kwargs
    flag, default = _UPDATED_WHERE[name]
    kept = [given.get(key) for key in ("running_mean", "running_var")]
    if given.get(flag, default) and any(value is not None for value in kept):
        raise TypeError(
            f"it would write to running_mean and running_var; give None for them, or {flag}=False"
        )


#: Norms → which argument makes them update their statistics, and its default.
_UPDATED_WHERE = {"batch_norm": ("training", False), "instance_norm": ("use_input_stats", True)}


def costly(name: str, args: tuple[Any, ...]) -> int:
    """Multiplications of a matrix decomposition or a series, roughly; 0 for anything else."""
    if name == "polygamma":
        return _SERIES * sum(tensor.numel() for tensor in tensors(args))
    factor = _DECOMPOSITIONS.get(name, 0)
    if not factor or not args or not isinstance(args[0], torch.Tensor) or args[0].ndim < 2:
        return 0
    rows, columns = args[0].shape[-2:]
    return factor * args[0].numel() * min(rows, columns)


#: Multiplications of one element of polygamma: two microseconds were measured.
_SERIES = 512
#: A product of matrices is so much faster, for each multiplication, than what has no such routine:
#: convolutions of doubles and windows of pools (8 to 12 times), powers of distances (30 times).
_SLOW, _POWER = 8, 32
#: Decompositions → multiplications beside those of one product (heuristic, from LAPACK's counts).
_DECOMPOSITIONS = {
    **dict.fromkeys(("cholesky", "det", "slogdet", "solve", "solve_triangular"), 1),
    "inv": 2,
    "eigvalsh": 4,
    "svdvals": 8,
    "matrix_norm": 8,
    "matrix_exp": 20,
}


def predicted(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Run ``function`` on tensors without memory (device "meta") and refuse it where any
    intermediate result is too large.

    Returns the number of its multiplications.
    """
    tally = _Tally()
    with torch.no_grad(), tally:
        function(*_meta(args), **_meta(kwargs))
    return tally.work


class _Tally(DispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.work = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tensors(result):
            check_size(tensor.shape)
        name = func.overloadpacket.__name__
        if name == "convolution":
            self.work += _convolution(result, *args)
        elif "pool" in name and "adaptive" not in name:
            windows = next(tensors(result)).numel()
            self.work += _SLOW * windows * math.prod(args[1])
        elif name in ("mm", "bmm", "addmm", "baddbmm"):
            self.work += check_matmul(*args[-2:])
        return result


def _convolution(made: Tensor, input: Tensor, weight: Tensor, *args: Any) -> int:
    """Multiplications of a convolution, which copies a patch of its input for every output."""
    transposed = args[4]
    taps = weight.numel() // max(weight.shape[0], 1)  # of one output; transposed: of one input
    places = (input if transposed else made).numel()
    channels = (input if transposed else made).shape[1] if made.ndim > 1 else 1
    groups = max(args[6], 1)
    check_elements(places // max(channels, 1) * taps * groups)
    return _SLOW * places * taps


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.empty(tuple(value.shape), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_meta(part) for part in value)
    if isinstance(value, dict):
        return {key: _meta(part) for key, part in value.items()}
    return value


# -- functions whose result has a formula ----------------------------------------------------------


def check_growth(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    """Refuse ``name(*args, **kwargs)`` where it is too large.

    Returns the number of its multiplications; None where there is no formula for these arguments.
    """
    check = _CHECKS.get(name)
    if check is None:
        return None
    try:
        return check(*args, **kwargs)
    except TooLarge:
        raise
    except Exception:
        return None  # Wrong arguments: the error of torch explains them better.


def _joined(tensors: Any, *args: Any, **kwargs: Any) -> int:
    if not isinstance(tensors, (list, tuple)):
        raise TooLarge("tensors are joined from a list or tuple of them")
    check_elements(sum(tensor.numel() for tensor in tensors))
    return 0


def _block_diag(*tensors: Tensor) -> int:
    rows = sum(tensor.shape[-2] if tensor.ndim > 1 else 1 for tensor in tensors)
    columns = sum(tensor.shape[-1] if tensor.ndim else 1 for tensor in tensors)
    check_size((rows, columns))
    return 0


def _product(*tensors: Any) -> int:
    check_size([tensor.numel() for tensor in tensors])
    return 0


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> int:
    columns = weight.shape[0] if weight.ndim > 1 else 1
    check_size((*input.shape[:-1], columns))
    return input.numel() * columns


def _added(input: Tensor, first: Tensor, second: Tensor, **kwargs: Any) -> int:
    return check_matmul(first, second)


def _matmul(first: Tensor, second: Tensor) -> int:
    return check_matmul(first, second)


def _inner(first: Tensor, second: Tensor) -> int:
    check_size((*first.shape[:-1], *second.shape[:-1]))
    return first.numel() * second.numel() // max(first.shape[-1], 1)


def _diagonal(input: Tensor, offset: int = 0, *args: Any, **kwargs: Any) -> int:
    length = input.shape[-1] if input.ndim else 1
    offset = kwargs.get("diagonal", kwargs.get("offset", offset))
    check_size((*input.shape[:-1], length + abs(offset), length + abs(offset)))
    return 0


def _diag(input: Tensor, diagonal: int = 0) -> int:
    return _diagonal(input, diagonal) if input.ndim < 2 else 0


def _diagflat(input: Tensor, offset: int = 0) -> int:
    return _diagonal(input.reshape(-1), offset)


def _einsum(equation: str, *operands: Any) -> int | None:
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    left, _, right = equation.replace(" ", "").partition("->")
    labels = left.split(",")
    if "." in equation or "->" not in equation or len(labels) != len(operands):
        return None
    sizes: dict[str, int] = {}
    for names, tensor in zip(labels, operands, strict=True):
        for name, size in zip(names, tensor.shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))
    # Contracted from left to right: after each step only labels that are still needed are kept.
    kept = set(labels[0])
    work = 0
    for step, names in enumerate(labels[1:], 2):
        wanted = set(right).union(*labels[step:])
        work += math.prod(sizes[name] for name in kept | set(names))
        kept = (kept | set(names)) & wanted
        check_size([sizes[name] for name in kept])
    return work


def _one_hot(tensor: Tensor, num_classes: int = -1) -> int:
    if num_classes < 0:
        raise TooLarge("one_hot needs the number of classes: one_hot(index, K)")
    check_size((tensor.numel(), num_classes))
    return 0


def _pad(input: Tensor, pad: Any, *args: Any, **kwargs: Any) -> int:
    if not isinstance(pad, (list, tuple)):
        raise TooLarge("pad takes a list or tuple of widths")
    shape = list(input.shape)
    for axis in range(len(pad) // 2):
        shape[-1 - axis] += max(pad[2 * axis], 0) + max(pad[2 * axis + 1], 0)
    check_size(shape)
    return 0


def _repeat(input: Tensor, *repeats: Any, dims: Any = None) -> int:
    given = dims if dims is not None else repeats
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    check_size((input.numel(), *given))
    return 0


def _repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None) -> int:
    if not isinstance(repeats, int):
        raise TooLarge("repeat_interleave takes a whole number of repeats here")
    check_size((input.numel(), repeats))
    return 0


def _index_select(input: Tensor, dim: int, index: Tensor) -> int:
    check_size((input.numel() // max(input.shape[dim], 1), index.numel()))
    return 0


def _embedding(input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> int:
    check_size((input.numel(), weight.shape[-1]))
    return 0


def _new(input: Tensor, *size: Any, **kwargs: Any) -> int:
    given = size[0] if size and isinstance(size[0], (list, tuple)) else size
    given = kwargs.get("size", given)
    if not isinstance(given, (list, tuple)):
        raise TooLarge("a size is a list or tuple of integers")
    check_size(given)
    return 0


def _distances(x1: Tensor, x2: Tensor, p: float = 2.0) -> int:
    return check_matmul(x1, x2.mT) * (1 if p == 2 else _POWER)


def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> int:
    rows = input1.numel() // max(input1.shape[-1], 1)
    check_size((rows, input1.shape[-1], input2.shape[-1]))
    check_size((rows, weight.shape[0]))
    return _SLOW * rows * weight.numel()


def _attention(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kw: Any) -> int:
    check_broadcast((query[..., :1, :1], key[..., :1, :1], value))
    return check_matmul(query, key.mT) * (1 + value.shape[-1] // max(key.shape[-1], 1))


def _quantile(input: Tensor, q: Any, dim: int | None = None, *args: Any, **kwargs: Any) -> int:
    levels = q.numel() if isinstance(q, torch.Tensor) else 1
    rows = input.numel() // max(1 if dim is None or not input.ndim else input.shape[dim], 1)
    if dim is None or not input.ndim:
        rows = 1
    # The elements below and above each quantile, their ranks, and what lies between them.
    check_elements(4 * levels * rows)
    return 0


def _mvlgamma(input: Tensor, p: int) -> int:
    check_size((input.numel(), p))
    return 0


def _tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> int:
    axes = range(a.ndim - dims, a.ndim) if isinstance(dims, int) else dims[0]
    axes = [axes] if isinstance(axes, int) else axes
    shared = math.prod(a.shape[axis] for axis in axes)
    left, right = a.numel() // max(shared, 1), b.numel() // max(shared, 1)
    check_size((left, right))
    return left * shared * right


def _twice(input: Tensor) -> int:
    check_size((input.numel(), 2))
    return 0


def _cross(*args: Any, **kwargs: Any) -> int:
    check_broadcast((*args, *kwargs.values()))
    return 0


_CHECKS: dict[str, Callable[..., int | None]] = {
    **dict.fromkeys(("cat", "concat", "hstack", "vstack", "stack"), _joined),
    **dict.fromkeys(("outer", "kron", "meshgrid"), _product),
    **dict.fromkeys(("addmm", "addmv", "addbmm", "baddbmm"), _added),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv"), _matmul),
    **dict.fromkeys(("repeat", "tile"), _repeat),
    **dict.fromkeys(("new_full", "new_ones", "new_zeros"), _new),
    **dict.fromkeys(("view_as_complex", "view_as_real"), _twice),
    "bilinear": _bilinear,
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
    "mvlgamma": _mvlgamma,
    "quantile": _quantile,
    "repeat_interleave": _repeat_interleave,
    "scaled_dot_product_attention": _attention,
    "tensordot": _tensordot,
}

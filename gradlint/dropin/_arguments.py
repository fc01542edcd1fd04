"""The arguments and outputs of the caller's function, which may hold tensors in containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradlint.model.sample import map_tensors
from gradlint.trace.sparse import is_sparse

Tensors = tuple[torch.Tensor, ...]


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    map_tensors(value, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list or tuple as a tuple, anything else as a tuple of one, as torch does."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def outputs_of(returned: Any) -> Tensors:
    """The tensors that a function returned.

    Raises:
        ValueError: one of the outputs is not a tensor.
    """
    outputs = as_tuple(returned)
    for place, output in enumerate(outputs):
        if not isinstance(output, torch.Tensor):
            raise ValueError(
                f"output {place} of the function is not a tensor but "
                f"{'None' if output is None else 'a ' + type(output).__name__}: gradcheck needs a "
                "function that returns a tensor or a tuple of tensors; wrap it in one that "
                "returns those to be checked, such as `lambda *args: fn(*args)[0]`"
            )
    return outputs


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether elements lie in one strided storage."""
    return tensor.layout == torch.strided and not tensor.is_nested


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether ``tensor`` has a strided storage with an address; a tensor that autograd knows to be
    zero has none."""
    return is_dense(tensor) and not tensor._is_zerotensor()


def check_layouts(outputs: Sequence[torch.Tensor]) -> None:
    """Raise for outputs of layouts that torch rejects.

    Raises:
        ValueError: an output is sparse, or an MKLDNN tensor.
    """
    for output in outputs:
        kind = "Sparse" if is_sparse(output) else "MKLDNN"
        if not is_dense(output) and not output.is_nested:
            raise ValueError(
                f"{kind} output is not supported at gradcheck yet. "
                "Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
            )


def equal(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Whether two tensors hold the same values, NaN included."""
    if torch.equal(tensor, value):
        return True
    return bool(((tensor == value) | ((tensor != tensor) & (value != value))).all())


def unshared(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """``args`` with copies of those tensors that share memory, so that moving one of them does not
    move another."""
    tensors = [t for t in dict.fromkeys(tensors_in(args)) if has_memory(t) and t.numel()]
    owners: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage().data_ptr()
        owners[storage] = owners.get(storage, 0) + 1
    if all(count == 1 for count in owners.values()):
        return args

    def separate(tensor: torch.Tensor) -> torch.Tensor:
        if not has_memory(tensor) or owners.get(tensor.untyped_storage().data_ptr(), 0) < 2:
            return tensor
        return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    changed: tuple[Any, ...] = map_tensors(args, separate)
    return changed

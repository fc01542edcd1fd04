"""What an op keeps for its backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from gradlint.trace._problem import Output, Problem


def saved_tensors(problem: Problem) -> list[tuple[str, torch.Tensor]]:
    """Tensors saved for backward, each with the input's or output's name, or ``saved[k]``.

    A forward of its own, without a backward: while saved-tensor hooks are active, PyTorch does
    not notice a saved tensor that is modified in place, and torch.func refuses to work.

    Returns:
        (name, tensor), each tensor once; empty when the op does not run under such hooks.
    """
    import torch

    from gradlint.trace._problem import OpRaised

    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor.detach())
        return tensor

    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            leaves, outputs = problem.linearize()
    except OpRaised:
        return []
    names = [(item.name, leaf) for item, leaf in zip(problem.inputs, leaves, strict=True)]
    return _named(packed, names, outputs)


def _named(
    packed: list[torch.Tensor],
    inputs: list[tuple[str, torch.Tensor]],
    outputs: list[Output],
) -> list[tuple[str, torch.Tensor]]:
    known = {_key(tensor): name for name, tensor in inputs}
    for output in outputs:
        known.setdefault(_key(output.value), output.name)
    result: dict[tuple[object, ...], tuple[str, torch.Tensor]] = {}
    unnamed = 0
    for tensor in packed:
        key = _key(tensor)
        if key in result:
            continue
        name = known.get(key)
        if name is None:
            name, unnamed = f"saved[{unnamed}]", unnamed + 1
        result[key] = (name, tensor)
    return list(result.values())


def _key(tensor: torch.Tensor) -> tuple[object, ...]:
    """Equal for two tensors that show the same memory in the same way."""
    import torch

    dense = tensor.layout == torch.strided and not tensor.is_nested
    if not dense or tensor.device.type == "meta" or not tensor.numel():
        return (id(tensor),)
    try:
        pointer = tensor.data_ptr()
    except RuntimeError:  # subclasses without storage
        return (id(tensor),)
    return (pointer, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

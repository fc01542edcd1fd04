"""Whether the memory that a tensor describes is still there.

An op may free the memory of a tensor and keep the tensor (``untyped_storage().resize_(0)``, as FSDP
and activation offloading do, to fill it again before it is used). To read such a tensor ends the
process.
"""

from __future__ import annotations

import torch


def is_backed(tensor: torch.Tensor) -> bool:
    """Whether the storage of ``tensor`` holds all of its elements; True where that can't be asked
    (sparse and nested tensors, subclasses without memory of their own)."""
    if tensor.layout != torch.strided or tensor.is_nested or tensor.numel() == 0:
        return True
    if tensor.device.type == "meta":
        return True
    try:
        held = tensor.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):
        return True
    reach = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (tensor.storage_offset() + reach + 1) * tensor.element_size() <= held

"""Which tensors, and which elements of one tensor, share memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether ``b`` starts where ``a`` does; of sparse tensors, whether they may."""
    import torch

    if a.layout != torch.strided or b.layout != torch.strided:
        return a.layout == b.layout
    return a.data_ptr() == b.data_ptr()


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements of a strided tensor share memory, as after ``expand``; True also where
    that can't be excluded from its strides."""
    import torch

    if tensor.layout != torch.strided or tensor.is_nested or not tensor.numel():
        return False
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
    return False

"""Further samples in which masks that are the same everywhere have both values."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gradlint.inputs.designed import Designed, replaced
from gradlint.model.op import Op
from gradlint.model.sample import Sample


def mixed_masks(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with every other element of a mask turned, for each mask whose elements are all
    alike: what a backward does with the elements of the other kind is not seen there."""
    for name, tensor in sample.named_tensors(op.signature):
        if tensor.dtype != torch.bool or tensor.numel() < 2:
            continue
        alike = bool(tensor.all()) or not bool(tensor.any())
        if alike:
            odd = torch.arange(tensor.shape[-1]) % 2 == 1
            if tensor.shape[-1] < 2:  # a column
                odd = (torch.arange(len(tensor)) % 2 == 1).reshape(-1, *[1] * (tensor.dim() - 1))
            mixed = tensor ^ odd.expand(tensor.shape)
            yield replaced(sample, tensor, mixed, f"where `{name}` has True and False")

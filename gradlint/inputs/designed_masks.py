"""Further samples in which masks that are the same everywhere have both values, or in which what
masks leave out is large."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from gradlint.inputs.designed import Designed, exchanged, replaced
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


#: What stands in the place of elements that a mask leaves out (heuristic: exponentials overflow,
#: and squares do not).
GARBAGE = 1e4

#: Masks that are tried, at most.
MOST_MASKS = 2


def with_garbage(op: Op, sample: Sample) -> Iterator[tuple[Sample, Designed]]:
    """Pairs of samples that differ in elements which a mask of theirs may leave out, where these
    are large in one of them, of either sign: it shows something where forward returns the same for
    both. What is padded may hold anything."""
    named = list(sample.named_tensors(op.signature))
    masks = [(n, t) for n, t in named if t.dtype == torch.bool and t.numel() > 1]
    for name, mask in masks[:MOST_MASKS]:
        mixed = mask
        if bool(mask.all()) or not bool(mask.any()):
            odd = torch.arange(mask.shape[-1], device=mask.device) % 2 == 1
            mixed = mask ^ odd.expand(mask.shape)
        before = exchanged(sample, {id(mask): mixed}, sample.label, sample.kind)
        for left_out, sign in itertools.product((~mixed, mixed), (1.0, -1.0)):
            made = {id(mask): mixed}
            for _, tensor in named:
                if _is_masked_by(tensor, mask):
                    where = left_out.reshape(*mask.shape, *[1] * (tensor.dim() - mask.dim()))
                    turned = sign if len(made) % 2 else -sign
                    value = tensor.detach().masked_fill(where, turned * GARBAGE)
                    made[id(tensor)] = value.requires_grad_(tensor.requires_grad)
            label = f"where elements that `{name}` leaves out are {sign * GARBAGE:.0f}"
            label += ", or its negative" if len(made) > 2 else ""  # beside the mask
            if len(made) > 1:
                yield before, Designed(exchanged(sample, made, label, "special"), {})


def _is_masked_by(tensor: torch.Tensor, mask: torch.Tensor) -> bool:
    """Whether a mask may tell of each element, or row, of a tensor whether it counts."""
    plain = tensor.is_floating_point() and tensor.layout == torch.strided
    return plain and tensor.shape[: mask.dim()] == mask.shape

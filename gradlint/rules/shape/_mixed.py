"""Inputs of mixed dtypes, where forward takes them: a weight coarser than the activation, and the
other way round."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from gradlint.inputs import map_tensors
from gradlint.rules._subject import Subject

if TYPE_CHECKING:
    from gradlint.inputs import Sample

#: Dtype → the one that stands beside it.
COARSER = {torch.float64: torch.float32, torch.float32: torch.bfloat16}


def mixed(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """The op with its first differentiable tensor in a coarser dtype, then with all others so; each
    with words for it. Nothing where there are not two of one dtype to tell apart."""
    if subject.op.module is not None:
        return
    tensors = {id(t): (name, t) for name, t in subject.sample.named_tensors(subject.op.signature)}
    differentiable = [
        (key, name, tensor)
        for key, (name, tensor) in tensors.items()
        if tensor.requires_grad and tensor.layout == torch.strided and tensor.dtype in COARSER
    ]
    dtypes = {tensor.dtype for _, _, tensor in differentiable}
    if len(differentiable) < 2 or len(dtypes) != 1:
        return
    wide = dtypes.pop()
    for chosen in (differentiable[:1], differentiable[1:]):
        keys = {key for key, _, _ in chosen}
        sample = _converted(subject.sample, keys, COARSER[wide])
        names = ", ".join(f"`{name}`" for _, name, _ in chosen)
        low = str(COARSER[wide]).removeprefix("torch.")
        words = f"with {names} in {low} and the others in {str(wide).removeprefix('torch.')}"
        found = Subject(subject.op, sample, subject.settings)
        found.problem.preserve_state = subject.problem.preserve_state
        yield words, found


def _converted(sample: Sample, keys: set[int], dtype: torch.dtype) -> Sample:
    def convert(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in keys:
            return tensor
        return tensor.detach().to(dtype).requires_grad_(tensor.requires_grad)

    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return replace(sample, args=args, kwargs=kwargs)

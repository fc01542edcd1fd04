"""Further samples with other numbers in the same order, and with ties."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from gradlint.inputs._gather import gather
from gradlint.inputs.designed import (
    MOST_OPERANDS,
    Designed,
    domain_of,
    exchanged,
    is_floating,
    replaced,
)
from gradlint.inputs.domains import CONFINED
from gradlint.model.op import Op
from gradlint.model.sample import Sample

#: Share of the distance to the next larger number by which numbers are moved without a change of
#: their order.
TOWARDS_NEXT = 0.3


def ranking(op: Op, sample: Sample) -> Iterator[tuple[str, Designed]]:
    """The names of floating tensors that carry no gradient, or get none by the code of backward,
    and may count by their order alone, as times and scores do, each with ``sample`` with other
    numbers in the same order."""
    constant = {item.name for item in gather(op) if item.differentiable is False}
    named = [
        (name, tensor)
        for name, tensor in sample.named_tensors(op.signature)
        if (not tensor.requires_grad or name in constant) and _may_rank(sample, name, tensor)
    ]
    for name, tensor in named[:MOST_OPERANDS]:
        ordered, order = tensor.detach().sort(dim=-1)
        nearer_next = ordered[..., :-1] + TOWARDS_NEXT * ordered.diff(dim=-1)
        moved = torch.cat([nearer_next, ordered[..., -1:]], dim=-1)
        flat = torch.empty_like(moved).scatter_(-1, order, moved)
        yield name, replaced(sample, tensor, flat, f"with other `{name}` in the same order")


def _may_rank(sample: Sample, name: str, tensor: torch.Tensor) -> bool:
    plain = domain_of(sample, name) not in CONFINED.values()
    wide = tensor.dim() > 0 and tensor.shape[-1] > 2
    return is_floating(tensor) and plain and wide


def with_ties(op: Op, sample: Sample, name: str) -> Iterator[Designed]:
    """``sample`` with numbers of the tensor ``name`` that are equal along its last axis: every two
    neighbours in their order, and all. They are not differentiated: what is equal is a kink."""
    tensor = dict(sample.named_tensors(op.signature))[name]
    plain = tensor.detach()
    sample = exchanged(sample, {id(tensor): plain}, sample.label, sample.kind)
    tensor = plain
    ordered, order = tensor.detach().sort(dim=-1)
    places = torch.arange(tensor.shape[-1], device=tensor.device)
    paired = ordered[..., places - places % 2]
    flat = torch.empty_like(paired).scatter_(-1, order, paired)
    yield replaced(sample, tensor, flat, f"where `{name}` has ties")
    equal = ordered[..., -1:].expand_as(ordered)
    yield replaced(sample, tensor, equal, f"where all of `{name}` are equal")

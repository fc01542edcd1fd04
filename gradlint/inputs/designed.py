"""Further samples, designed to show faults that the first one hides.

Each differs from the first in one thing, or in a few that are independent: an argument away from
its default, indices that repeat, an operand that is broadcast, values on the other side of a
threshold. They are only made here; whether forward takes them is found by calling it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradlint.model.op import Op
from gradlint.model.sample import Sample, SampleKind, map_tensors

#: Operands that are changed one at a time, at most.
MOST_OPERANDS = 3

#: In the words of domains whose values are special along the last axis: another one is no choice.
ALONG_LAST = ("last axis", "inverse", "rows")

#: Domains, in words, whose values may be changed: all of them, or without a change of sign.
ANY_SIGN, SAME_SIGN = ("all reals",), ("all reals", "positive", "negative")

#: A tensor that forward tests or compares, and the number that it does that with.
Tested = tuple[torch.Tensor, float]


@dataclass
class Designed:
    """A further sample.

    Args:
        sample: its ``label`` says in what it differs from the first one, in words that complete
            a sentence: "with stride=2", "where `index` repeats".
        moved: argument → value, where arguments were moved away from those of the first sample.
        as_if: for an operand that is broadcast, the sample with that operand expanded: forward
            returns the same for both if it broadcasts at all.
        slices: for a tensor with an axis more, the sample with each slice of it alone: forward
            returns their results one behind the other if that is an axis of a batch.
        alternatives: the same at other sizes, tried in turn where forward refuses ``sample``.
        suiting: for an axis that is moved, the same with the sizes that suited along the other one:
            what is right there was taken at ``sample`` by accident.
        op: another form of the op; None for the same.
        only_if_seen: whether there is something to judge only where outputs differ from those of
            the first sample.
        must_run: whether backward has to run where forward does.
        unlike: another form of the op: there is something to judge only where its outputs differ.
    """

    sample: Sample
    moved: dict[str, Any]
    as_if: Sample | None = None
    slices: Sequence[Sample] = ()
    alternatives: Sequence[Sample] = ()
    suiting: Sample | None = None
    op: Op | None = None
    only_if_seen: bool = False
    must_run: bool = False
    unlike: Op | None = None


def replaced(
    sample: Sample, chosen: torch.Tensor, flat: torch.Tensor, label: str, kind: SampleKind = "same"
) -> Designed:
    """``sample`` with the elements of one tensor replaced."""
    made = flat.reshape(chosen.shape).to(chosen.dtype).requires_grad_(chosen.requires_grad)
    return Designed(exchanged(sample, {id(chosen): made}, label, kind), {})


def exchanged(
    sample: Sample, exchange: Mapping[int, torch.Tensor], label: str, kind: SampleKind
) -> Sample:
    """``sample`` with some of its tensors, by identity, exchanged for others."""

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        return exchange.get(id(tensor), tensor)

    args, kwargs = map_tensors((sample.args, sample.kwargs), convert)
    return replace(sample, label=label, kind=kind, args=args, kwargs=kwargs)


def leaf_like(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of ``value`` that requires grad where ``like`` does."""
    return value.detach().clone().contiguous().requires_grad_(like.requires_grad)


def is_floating(tensor: torch.Tensor) -> bool:
    """Whether a tensor is strided, of floating numbers that are not complex."""
    return tensor.is_floating_point() and tensor.layout == torch.strided


def is_same(tensor: torch.Tensor, seen: torch.Tensor) -> bool:
    """Whether ``seen`` was ``tensor`` itself, or a copy of it."""
    return tensor.shape == seen.shape and bool((tensor.detach() == seen).all())


def domain_of(sample: Sample, name: str) -> str:
    """The domain of the tensor ``name``, which may be one of several in an argument."""
    return sample.domains.get(name.partition("[")[0], "")

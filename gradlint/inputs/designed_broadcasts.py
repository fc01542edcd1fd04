"""Further samples in which one operand is broadcast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradlint.inputs._gather import gather
from gradlint.inputs.designed import (
    ALONG_LAST,
    MOST_OPERANDS,
    SAME_SIGN,
    Designed,
    domain_of,
    exchanged,
    is_floating,
    leaf_like,
)
from gradlint.inputs.domains import CONFINED
from gradlint.model.op import Op
from gradlint.model.sample import Sample, SampleKind

#: Axes of each operand that are broadcast one at a time.
MOST_AXES = 2

#: Size of an axis that one operand has more than the others (odd, and not the first size of any
#: inferred sample).
EXTRA_AXIS = 2


def broadcast(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with one operand broadcast: along its first and its last axis, without its first
    axis, and with an axis more than the others have."""
    named = [(n, t) for n, t in sample.named_tensors(op.signature) if is_floating(t)]
    if len(named) < 2:
        return
    for name, tensor in named[:MOST_OPERANDS]:
        domain = domain_of(sample, name)
        if domain in CONFINED.values():
            continue
        ends = dict.fromkeys((tensor.dim() - 1, 0)) if tensor.dim() else ()
        if any(word in domain for word in ALONG_LAST):
            ends = dict.fromkeys((0,) if tensor.dim() > 1 else ())
        for axis in list(ends)[:MOST_AXES]:
            if tensor.shape[axis] > 1:
                narrow = leaf_like(tensor.narrow(axis, 0, 1), tensor)
                label = f"where `{name}` is broadcast along axis {axis}"
                yield _expanded(sample, tensor, narrow, tensor.shape, label, "broadcast")
        if tensor.dim() and tensor.shape[0] > 1:
            label = f"where `{name}` has an axis less"
            yield _expanded(
                sample, tensor, leaf_like(tensor[0], tensor), tensor.shape, label, "other-rank"
            )
    (first, tensor), *others = named
    along = [word in domain_of(sample, n) for n, _ in others for word in ALONG_LAST]
    scaled = domain_of(sample, first) in ("", *SAME_SIGN)
    if (
        scaled
        and not any(along)
        and tensor.dim()
        and all(other.dim() <= tensor.dim() for _, other in others)
    ):
        more = torch.stack([tensor.detach() * (1 - 0.1 * k) for k in range(EXTRA_AXIS)])
        label = f"where `{first}` has an axis more"
        exchange = {id(tensor): leaf_like(more, tensor)}
        sample_there = exchanged(sample, exchange, label, "other-rank")
        whole = {
            id(t): leaf_like(t.detach().expand(EXTRA_AXIS, *_padded(t, tensor.dim())), t)
            for _, t in others
        }
        yield Designed(
            sample_there, {}, as_if=exchanged(sample, {**exchange, **whole}, label, "other-rank")
        )


def batched_alone(op: Op, sample: Sample) -> Iterator[Designed]:
    """``sample`` with an axis more in each vector that forward indexes behind any number of axes,
    ``y[..., 1:]``, where it indexes another tensor of floating numbers without."""
    known = {item.name: item.batched for item in gather(op)}
    named = [(n, t) for n, t in sample.named_tensors(op.signature) if is_floating(t)]
    if all(known.get(name, False) for name, _ in named):
        return  # all of them get an axis more together
    for name, tensor in named:
        plain = domain_of(sample, name) in ("", *SAME_SIGN)
        if not (known.get(name, False) and tensor.dim() == 1 and plain):
            continue
        rows = [tensor.detach() * (1 - 0.1 * k) for k in range(EXTRA_AXIS)]
        label = f"where `{name}` is a batch"
        more, *alone = (
            exchanged(sample, {id(tensor): leaf_like(value, tensor)}, label, "other-rank")
            for value in (torch.stack(rows), *rows)
        )
        yield Designed(more, {}, slices=alone)


def _padded(tensor: torch.Tensor, rank: int) -> list[int]:
    return [1] * (rank - tensor.dim()) + list(tensor.shape)


def _expanded(
    sample: Sample,
    tensor: torch.Tensor,
    small: torch.Tensor,
    shape: Sequence[int],
    label: str,
    kind: SampleKind,
) -> Designed:
    whole = leaf_like(small.detach().expand(*shape), tensor)
    return Designed(
        exchanged(sample, {id(tensor): small}, label, kind),
        {},
        as_if=exchanged(sample, {id(tensor): whole}, label, kind),
    )

"""Further samples with the very values that forward tests for: a count of zero, a mark for what is
missing, NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gradlint.inputs._gather import gather
from gradlint.inputs.designed import Designed, Tested, exchanged, is_floating, is_same
from gradlint.model.op import Op
from gradlint.model.sample import Sample

#: Of so many elements, one gets the value: others stay beside it in every row.
EVERY = 3


def exact_values(op: Op, sample: Sample, tested: Sequence[Tested]) -> Iterator[Designed]:
    """``sample`` with values that forward tests for, in tensors that get no gradient, and with NaN
    in each tensor that it tests for NaN, which is then not differentiated: NaN can't be moved."""
    constant = {item.name for item in gather(op) if item.differentiable is False}
    made: set[str] = set()
    for name, tensor in sample.named_tensors(op.signature):
        fixed = not tensor.requires_grad or name in constant
        for seen, value in tested if is_floating(tensor) and tensor.numel() > 1 else ():
            if not is_same(tensor, seen) or not (fixed or math.isnan(value)):
                continue
            flat = tensor.detach().reshape(-1).clone()
            holds = flat.isnan() if math.isnan(value) else flat == value
            label = f"where `{name}` is {value:g} in places"
            if bool(holds.any()) or label in made:
                continue
            made.add(label)
            single = flat.clone()
            single[len(flat) // 2] = value  # of three, one that is left has no spread
            flat[:: EVERY if len(flat) > EVERY else 2] = value
            there, fewer = (
                exchanged(sample, {id(tensor): each.reshape(tensor.shape)}, label, "special")
                for each in (flat, single)
            )
            yield Designed(there, {}, alternatives=[fewer])

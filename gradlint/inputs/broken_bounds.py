"""Whether other sizes break a bound that the arguments kept: "0 < k < n" at a smaller n."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from gradlint.inputs._gather import gather
from gradlint.inputs.bounds import side_value
from gradlint.model.op import Op
from gradlint.model.related import Bound
from gradlint.model.sample import Sample


def breaks_bounds(op: Op, before: Sample, after: Sample) -> bool:
    """Whether arguments of ``after`` lie beyond a bound between values and sizes, read from
    documentation and from what forward refuses, that those of ``before`` keep."""
    bounds = dict.fromkeys(bound for item in gather(op) for bound in item.bounds)
    named, others = (dict(sample.named_tensors(op.signature)) for sample in (before, after))
    return any(_keeps(bound, named) and not _keeps(bound, others) for bound in bounds)


def _keeps(bound: Bound, tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether ``tensors`` keep a bound, as far as it speaks of them."""
    less, more = (side_value(side, tensors) for side in (bound.less, bound.more))
    low, high = _extreme(less, most=True), _extreme(more, most=False)
    if low is None or high is None:
        return True
    return low < high if bound.strict else low <= high


def _extreme(value: torch.Tensor | int | None, *, most: bool) -> float | None:
    if not isinstance(value, torch.Tensor):
        return value
    if not value.numel() or value.is_complex():
        return None
    return float(value.detach().max() if most else value.detach().min())

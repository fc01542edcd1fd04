"""An op in a residual connection, h + f(h): one incoming gradient goes to both branches.

Under the cotangent v the gradient of h is g + v, where g is what backward returns. A backward that
writes to what it receives changes v as well, for the branch beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from gradlint.numerics._products import unit_roundoff, widened
from gradlint.rules._same import FEW, Difference, compared

if TYPE_CHECKING:
    from gradlint.rules._subject import Subject
    from gradlint.trace._problem import Output

#: Dtypes in which every device adds.
_ADDED = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)


def addable(outputs: Sequence[Output], leaves: Sequence[torch.Tensor]) -> dict[str, int]:
    """Output name → position of the first input that it can be added to: one of its shape, dtype
    and device. Outputs without such an input are left out."""
    found = {}
    for output in outputs:
        kind = _kind(output.value)
        fitting = (k for k, leaf in enumerate(leaves) if kind and _kind(leaf) == kind)
        position = next(fitting, None)
        if position is not None:
            found[output.name] = position
    return found


def residuals(
    outputs: Sequence[Output], leaves: Sequence[torch.Tensor], added: dict[str, int]
) -> list[torch.Tensor]:
    """``outputs``, those in ``added`` with their inputs added to them."""
    with torch.enable_grad():
        # Behind the product, the engine alone holds what comes in, as within a network.
        return [
            (leaves[added[item.name]] + item.value) * 1.0 if item.name in added else item.value
            for item in outputs
        ]


def spoiled(subject: Subject) -> list[Difference]:
    """Inputs whose gradient in the residual use is not the op's own with the cotangents added.

    Nothing is compared where identical calls differ, or a second backward of the graph does: that
    is what other rules tell.
    """
    from gradlint.rules.state._fit import relative_to, unfit

    guarded = subject.guarded
    if guarded.residual is None or guarded.second is None:
        return []
    terms = [_terms(subject, position) for position in range(len(guarded.first))]
    expected = [sum(parts[1:], parts[0]) if parts else None for parts in terms]
    pairs = list(zip(guarded.residual, expected, strict=True))
    if all(compared(0, "", got, want, None) is None for got, want in pairs) or unfit(subject):
        return []
    base = relative_to(subject, guarded.first)
    if base.differences(guarded.second):
        return []
    found = []
    for position, (got, want) in enumerate(pairs):
        allowed = base.allowed(position)
        if len(terms[position]) > 1 and want is not None:
            sizes = torch.stack([widened(part).abs() for part in terms[position]]).sum(0)
            rounding = FEW * unit_roundoff(want.dtype) * sizes
            allowed = rounding if allowed is None else allowed + rounding
        difference = compared(position, base.names[position], got, want, allowed)
        if difference is not None:
            found.append(difference)
    return found


def _terms(subject: Subject, position: int) -> list[torch.Tensor]:
    """What the gradient of input ``position`` is the sum of: the op's own, and cotangents."""
    own, added = subject.guarded.first[position], subject.guarded.added
    beside = [subject.run.cotangents[name] for name, where in added.items() if where == position]
    return [*([] if own is None else [own]), *beside]


def _kind(tensor: torch.Tensor) -> tuple[object, ...]:
    """What tensors have in common whose sum is no broadcast; empty where none is tried."""
    if tensor.is_nested or tensor.layout != torch.strided or tensor.dtype not in _ADDED:
        return ()
    return (tensor.shape, tensor.dtype, tensor.device) if tensor.numel() else ()

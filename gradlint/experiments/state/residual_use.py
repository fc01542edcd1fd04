"""An op in a residual connection, h + f(h): one incoming gradient goes to both branches.

Under the cotangent v the gradient of h is g + v, where g is what backward returns. A backward that
writes to what it receives changes v as well, for the branch beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradlint.experiments.baseline_comparison import compare
from gradlint.numerics.products import dense
from gradlint.ops.backed import is_backed
from gradlint.trace.op_io import Output

Gradients = list["torch.Tensor | None"]

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


def unless_expected(
    gradients: Gradients, own: Gradients, cotangents: dict[str, torch.Tensor], added: dict[str, int]
) -> Gradients | None:
    """``gradients`` of the residual use; None where they are ``own`` with the cotangents added, in
    every bit, so that nothing is left to be judged."""
    for position, got in enumerate(gradients):
        terms = terms_of(own, cotangents, added, position)
        if compare(position, "", got, sum_of(terms), None) is not None:
            return gradients
    return None


def terms_of(
    own: Gradients, cotangents: dict[str, torch.Tensor], added: dict[str, int], position: int
) -> list[torch.Tensor]:
    """What the gradient of input ``position`` is the sum of: the op's own, and cotangents."""
    gradient = own[position]
    beside = [cotangents[name] for name, where in added.items() if where == position]
    return [*([] if gradient is None else [dense(gradient)]), *beside]


def sum_of(terms: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Their sum; None where there are none."""
    return sum(terms[1:], terms[0]) if terms else None


def _kind(tensor: torch.Tensor) -> tuple[object, ...]:
    """What tensors have in common whose sum is no broadcast; empty where none is tried."""
    if tensor.is_nested or tensor.layout != torch.strided or tensor.dtype not in _ADDED:
        return ()
    if not is_backed(tensor):
        return ()
    return (tensor.shape, tensor.dtype, tensor.device) if tensor.numel() else ()

"""A VJP of the op under changed conditions: other memory layouts or requires_grad flags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradlint.model.op import Op
from gradlint.model.sample import map_tensors
from gradlint.trace.layouts import relaid
from gradlint.trace.op_io import Output
from gradlint.trace.problem import Problem


class _PassedAs(torch.autograd.Function):
    """The identity, with an output in the memory layout that ``convert`` chooses."""

    @staticmethod
    def forward(
        ctx: object, value: torch.Tensor, convert: Callable[[torch.Tensor], torch.Tensor | None]
    ) -> torch.Tensor:
        found = convert(value)
        if found is None:
            return value.clone()
        # Not a view of the buffer, because in-place ops reject views made inside a Function.
        where = found.untyped_storage(), found.storage_offset(), found.shape, found.stride()
        return found.new_empty(0).set_(*where)

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad, None


def pull_altered(
    problem: Problem,
    cotangents: dict[str, torch.Tensor],
    *,
    values: Sequence[torch.Tensor] | None = None,
    inputs: Callable[[int, torch.Tensor], torch.Tensor | None] | None = None,
    constants: Callable[[torch.Tensor], torch.Tensor | None] | None = None,
    requires_grad: Sequence[bool] | None = None,
    exact: bool = False,
) -> tuple[list[Output], list[torch.Tensor | None]]:
    """Outputs, and a VJP from a fresh forward: one gradient (or None) per input.

    Args:
        problem: the op on its sample.
        cotangents: output name → cotangent; outputs that are not listed get none.
        values: the point; by default the sample's own.
        inputs: called with the position and detached value of each input; returns what the op gets,
            the same values in another layout, or None to leave the input as it is.
        constants: the same for every tensor that is not an input: masks, indices, buffers.
        requires_grad: which inputs require grad; by default all. The others get None.
        exact: pass the cotangents themselves, in their own layout, instead of copies.

    Raises:
        OpRaised: when forward or backward raises.
    """
    leaves = problem.leaves(values, requires_grad)
    passed = list(leaves)
    if inputs is not None:
        for position, leaf in enumerate(leaves):
            passed[position] = _PassedAs.apply(leaf, lambda x, k=position: inputs(k, x))
    outputs = problem.connect(passed, constants)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    found = iter(problem.pull_from(outputs, wanted, cotangents, as_given=exact))
    return outputs, [next(found) if leaf.requires_grad else None for leaf in leaves]


def laid_out_op(op: Op, layout: str) -> Op:
    """``op`` (not a module), with every tensor that it gets in ``layout``."""

    def place(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.requires_grad:
            found = relaid(tensor, layout)
            return tensor if found is None else found
        return _PassedAs.apply(tensor, lambda value: relaid(value, layout))

    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = map_tensors((args, kwargs), place)
        return op.call(*args, **kwargs)

    return replace(op, call=call)

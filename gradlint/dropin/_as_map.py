"""Turn the caller's function into the map that the measurements judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from gradlint.dropin._arguments import has_memory
from gradlint.dropin._function import Function
from gradlint.experiments.differentiable_maps import float64_twin
from gradlint.numerics.map import Map, Projection
from gradlint.numerics.products import dense


def as_map(function: Function, chosen: Sequence[int] | None = None) -> Map:
    """``function`` as the map that is judged.

    Args:
        chosen: positions of the outputs to judge; by default the differentiable ones.
    """
    wanted = function.differentiable if chosen is None else list(chosen)
    at_sample = [function.returned[k] for k in wanted]
    point = function.values
    here = function.returned
    if function.filled_up:
        # With every element specified the function may differ (if it takes the mean over specified
        # elements, for example), so differences are taken there, as in torch.
        here = function.evaluate(point) or here
    outputs = [_own(dense(here[k].detach()), function.inputs) for k in wanted]
    endless = None
    if not all(bool(torch.isfinite(y).all()) for y in outputs):
        endless = [torch.isinf(y) for y in outputs]
        outputs = [y.masked_fill(inf, 0.0) for y, inf in zip(outputs, endless, strict=True)]

    # A call may return views of tensors that change later: of inputs, which are moved, and of
    # buffers that it returns every time.
    moving = (*function.inputs, *function.returned)

    def evaluate(values: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        returned = function.evaluate(values)
        if returned is None or len(returned) != len(function.returned):
            function.shapes_change = function.shapes_change or returned is not None
            return None
        found = [dense(returned[k].detach()) for k in wanted]
        if any(
            a.shape != b.shape or a.dtype != b.dtype for a, b in zip(found, outputs, strict=True)
        ):
            function.shapes_change = True
            return None
        if endless is not None:
            return _constants_out(found, endless)
        return [_own(y, moving) for y in found]

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        attached = [k for k, y in enumerate(at_sample) if y.requires_grad]
        if not attached:
            return [None] * len(values)
        chosen_vs = [cotangents[k] for k in attached]
        if endless is not None:
            chosen_vs = [cotangents[k] * ~endless[k] for k in attached]
        if all(a is b for a, b in zip(values, point, strict=True)):
            grads = function.backward([at_sample[k] for k in attached], chosen_vs)
            return [None if grad is None else dense(grad) for grad in grads]
        if function.filled_up:  # backward there would say nothing about backward at the sample
            return [torch.full_like(value, float("nan")) for value in values]
        return function.pull_beside(values, [wanted[k] for k in attached], chosen_vs)

    rounding = function.knowledge.rounding
    known = rounding() if rounding else None
    return Map(
        point,
        outputs,
        evaluate,
        pull_at,
        [known[k] for k in wanted] if known else None,
        project=_projections(function),
        twin=partial(_twin, function) if wanted == function.differentiable else None,
    )


def _twin(function: Function) -> Map | None:
    """The same function in float64; None if it is in float64 already or does not accept it."""
    if all(value.dtype in (torch.float64, torch.complex128) for value in function.values):
        return None
    if function.filled_up:
        return None
    return float64_twin(function.problem())


def _projections(function: Function) -> list[Projection | None] | None:
    patterns = [None if sparse is None else sparse.pattern for sparse in function.sparse]
    if all(pattern is None for pattern in patterns):
        return None
    return [None if pattern is None else partial(torch.mul, pattern) for pattern in patterns]


def _own(output: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    """``output``, copied if it shares memory with one of ``others``."""
    if output._is_zerotensor():  # has no memory
        return output
    storage = output.untyped_storage().data_ptr()
    if any(has_memory(t) and t.untyped_storage().data_ptr() == storage for t in others):
        return output.clone()
    return output


def _constants_out(
    outputs: Sequence[torch.Tensor], endless: Sequence[torch.Tensor]
) -> list[torch.Tensor] | None:
    """``outputs`` with zeros where they are infinite at the sample, like the −∞ of a mask; None if
    one of those elements is finite now, and so not a constant."""
    if any(not bool(torch.isinf(y[inf]).all()) for y, inf in zip(outputs, endless, strict=True)):
        return None
    return [
        torch.where(inf, torch.zeros_like(y), y) for y, inf in zip(outputs, endless, strict=True)
    ]

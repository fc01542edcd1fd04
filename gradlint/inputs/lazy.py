"""Modules whose parameters take their shapes from the first inputs (torch's lazy modules)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.parameter import UninitializedBuffer
from torch.nn.parameter import is_lazy as uninitialized

from gradlint.inputs.not_found import NoInputsFound
from gradlint.model.op import Op
from gradlint.model.sample import Sample, map_tensors
from gradlint.numerics.seeds import PARAMETERS, mixed

#: What a user may add where forward does not run on the given inputs.
_LINE = '--inputs "randn(3, 4)"'


def is_lazy(module: torch.nn.Module) -> bool:
    """Whether some parameter or buffer has no shape yet."""
    return any(uninitialized(item) for item in (*module.parameters(), *module.buffers()))


def fresh(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of ``module``, also where parameters have no shape yet; the module itself where it
    can't be copied."""
    # torch copies parameters without shapes, but not buffers.
    known: dict[int, Any] = {}
    for buffer in module.buffers():
        if isinstance(buffer, UninitializedBuffer):
            kept = {"device": buffer.device, "dtype": buffer.dtype}  # unknown to torch's stubs
            known[id(buffer)] = UninitializedBuffer(**kept)  # type: ignore[arg-type]
    try:
        return copy.deepcopy(module, known)
    except Exception:
        return module


def give_shapes(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype
) -> None:
    """Call ``module`` once, so that its parameters get their shapes and initial values.

    Args:
        module: a lazy module; it is changed.
        args: positional arguments, of which copies are passed.
        kwargs: keyword arguments, likewise.
        dtype: of floating parameters from now on.
    """

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone()

    module.to(dtype)
    with torch.no_grad():
        module(*map_tensors(args, copied), **map_tensors(kwargs, copied))


def _shapes(module: torch.nn.Module) -> list[tuple[int, ...]]:
    return [tuple(item.shape) for item in (*module.parameters(), *module.buffers())]


def with_shapes(op: Op, samples: Sequence[Sample], seed: int) -> None:
    """Where the module of ``op`` is lazy, or its first call gives a parameter another shape, put a
    copy in its place that the first of ``samples`` gave its shapes. The user's own module is left
    as it is.

    Args:
        op: the operator; it is changed.
        samples: of the operator.
        seed: of the initial values.

    Raises:
        NoInputsFound: forward raises on the sample.
    """
    if op.module is None or not samples:
        return
    lazy = is_lazy(op.module)
    if not lazy and not any(True for _ in op.module.parameters()):
        return
    sample = samples[0]
    floating = [t for _, t in sample.named_tensors(op.signature) if t.is_floating_point()]
    module = fresh(op.module)
    if module is op.module and not lazy:
        return  # it cannot be copied, and is left as it is
    dtype = floating[0].dtype if floating else torch.get_default_dtype()
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(mixed(seed, PARAMETERS))
            give_shapes(module, sample.args, sample.kwargs, dtype)
    except Exception as error:
        if not lazy:
            return  # told when forward is judged
        shown = f"{sample.label}, from which lazy parameters take their shapes"
        raise NoInputsFound([(shown, f"{type(error).__name__}: {error}")], _LINE) from error
    if not lazy and _shapes(module) == _shapes(op.module):
        return
    op.call = op.module = module
    op.notes.append(f"lazy parameters took their shapes from sample {sample.label}")

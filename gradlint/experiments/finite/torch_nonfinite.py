"""Operators of PyTorch that return NaN or infinities where their own value is finite.

``torch.matrix_exp`` returns infinities in bfloat16 and float16 for matrices of ordinary size. What
a user's forward makes of that is no fault of the forward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from gradlint.experiments.subject import Subject
from gradlint.ops.dispatch_mode import DispatchMode
from gradlint.trace.op_io import OpRaised


def torch_operator_to_blame(subject: Subject) -> str:
    """The name of the operator of PyTorch that is the first to return NaN or infinities in forward,
    where it got finite arguments, and returns values in the range of the dtype for the same
    arguments in float64; "" where there is none."""
    watched = _FirstNonFinite()
    try:
        with watched:
            subject.problem.forward()
    except (OpRaised, RuntimeError):
        return ""
    return watched.blamed


class _FirstNonFinite(DispatchMode):
    """Looks at the first call that turns finite numbers into others.

    Attributes:
        blamed: the name of its operator, where that returns finite values in float64.
    """

    def __init__(self) -> None:
        super().__init__()
        self.blamed = ""
        self._seen = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        looks = not (self._seen or func._schema.is_mutable) and _all_finite((args, kwargs))
        result = func(*args, **kwargs)
        if looks and not _all_finite(result):
            self._seen = True
            if _finite_in_float64(func, args, kwargs, result):
                self.blamed = func.overloadpacket.__name__.removeprefix("linalg_")
        return result


def _finite_in_float64(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether ``func`` has a value in float64 that the dtypes of ``result`` can hold."""
    wide_args, wide_kwargs = tree_map(_in_float64, (args, kwargs))
    try:
        wide = func(*wide_args, **wide_kwargs)
    except (RuntimeError, TypeError):
        return False
    pairs = list(zip(_floating(result), _floating(wide), strict=False))
    return bool(pairs) and all(
        one.dtype != torch.float64
        and one.shape == other.shape
        and bool((other.abs() <= torch.finfo(one.dtype).max).all())
        for one, other in pairs
    )


def _in_float64(value: Any) -> Any:
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def _floating(tree: Any) -> list[torch.Tensor]:
    leaves = tree_leaves(tree)
    return [x for x in leaves if isinstance(x, torch.Tensor) and x.is_floating_point()]


def _all_finite(tree: Any) -> bool:
    return all(x.layout == torch.strided and bool(torch.isfinite(x).all()) for x in _floating(tree))

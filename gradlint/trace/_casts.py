"""Casts to coarser dtypes that an op makes inside."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Coarser ones come last.
_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

#: Casts to these make a staircase of a function in float32 and float64.
_COARSE = (torch.float16, torch.bfloat16)


class Casts(TorchDispatchMode):
    """Watches casts of real floating tensors to coarser dtypes.

    Args:
        omitted: whether tensors keep the dtype that they have, so that the op computes in that.

    Attributes:
        coarsest: float16 or bfloat16 where something was cast to them; else None.
    """

    def __init__(self, *, omitted: bool = False) -> None:
        super().__init__()
        self.omitted = omitted
        self.coarsest: torch.dtype | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default and _coarser(kwargs.get("dtype"), args[0].dtype):
            if kwargs["dtype"] in _COARSE and self.coarsest is not torch.bfloat16:
                self.coarsest = kwargs["dtype"]
            if self.omitted:
                kwargs = {**kwargs, "dtype": args[0].dtype}
        return func(*args, **kwargs)


def _coarser(dtype: torch.dtype | None, before: torch.dtype) -> bool:
    known = dtype in _DTYPES and before in _DTYPES
    return known and _DTYPES.index(before) < min(2, _DTYPES.index(dtype))

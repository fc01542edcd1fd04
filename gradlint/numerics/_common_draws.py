"""Make the float64 twin of a stochastic op draw the op's own random numbers.

Under the same seed, PyTorch's generators return different numbers in float64 than in bfloat16
(always so for uniform ones), and a dropout mask made from them would differ. So the twin draws in
the low dtype, and the results are widened to float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from gradlint.numerics.map import Map
from gradlint.ops.dispatch_mode import DispatchMode


class CommonDraws(DispatchMode):
    """Makes operations that draw random numbers draw in ``narrow``, and widens their results.

    Attributes:
        drawn: whether any numbers were drawn.
    """

    def __init__(self, wide: torch.dtype, narrow: torch.dtype) -> None:
        super().__init__()
        self.wide, self.narrow = wide, narrow
        self.drawn = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return func(*args, **kwargs)
        given, spec = tree_flatten((args, kwargs))
        low_args, low_kwargs = tree_unflatten([self._narrowed(value) for value in given], spec)
        returned = func(*low_args, **low_kwargs)
        self.drawn = True
        writes = [
            item.alias_info is not None and item.alias_info.is_write
            for item in func._schema.returns
        ]
        if any(writes):  # in place: the result belongs in the tensor that was passed
            target = kwargs.get("out", args[0] if args else None)
            if isinstance(target, torch.Tensor):
                return target.copy_(returned)
        return tree_map(self._widened, returned)

    def _narrowed(self, value: Any) -> Any:
        if value is self.wide:
            return self.narrow
        if isinstance(value, torch.Tensor):
            return value.to(self.narrow) if value.dtype == self.wide else value
        return value

    def _widened(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype == self.narrow:
            return value.to(self.wide)
        return value


def with_common_draws(twin: Map, narrow: torch.dtype) -> Map | None:
    """``twin``, drawing its random numbers in ``narrow``; None if its op draws none."""
    drawn = False

    def evaluate(values: Sequence[torch.Tensor]) -> Sequence[torch.Tensor] | None:
        nonlocal drawn
        with CommonDraws(torch.float64, narrow) as mode:
            found = twin.evaluate(values)
        drawn |= mode.drawn
        return found

    def pull_at(
        values: Sequence[torch.Tensor], cotangents: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor | None]:
        with CommonDraws(torch.float64, narrow):
            return twin.pull_at(values, cotangents)

    outputs = evaluate(twin.values)
    if outputs is None or not drawn:
        return None
    return replace(twin, outputs=list(outputs), evaluate=evaluate, pull_at=pull_at)

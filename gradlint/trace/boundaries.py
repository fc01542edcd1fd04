"""Which tensors a forward sorts other values into, by searchsorted or bucketize."""

from __future__ import annotations

from typing import Any

import torch

from gradlint.ops.dispatch_mode import DispatchMode

#: ATen operator → position of its sorted values.
_SORTED = {"searchsorted": 0, "bucketize": 1}


class Boundaries(DispatchMode):
    """Notes the sorted values of each search.

    Attributes:
        found: these tensors, without a graph.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        place = _SORTED.get(name)
        held = args[place] if place is not None and len(args) > place else None
        if isinstance(held, torch.Tensor):
            self.found.append(held.detach())
        return self.through(func, args, kwargs or {})

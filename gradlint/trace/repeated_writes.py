"""Whether a forward writes to one cell more than once: what stays is then not defined."""

from __future__ import annotations

from typing import Any

import torch

from gradlint.ops.dispatch_mode import DispatchMode

#: ATen operators (without overloads and trailing underscores) that put values in places that
#: indices tell.
_PUTTING = ("index_put", "_index_put_impl")
_ALONG_AN_AXIS = ("scatter", "index_copy")


class RepeatedWrites(DispatchMode):
    """Looks for places that an operation of forward puts values in more than once.

    Attributes:
        found: whether there was one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "").rstrip("_")
        if not accumulates(args, kwargs) and isinstance(args[0], torch.Tensor):
            if name in _PUTTING:
                self._note(torch.zeros(args[0].shape, device=args[0].device), args[1])
            elif name in _ALONG_AN_AXIS and isinstance(args[3], torch.Tensor):
                self._note_along(name, *args[:3])
        return self.through(func, args, kwargs)

    def _note(self, counts: torch.Tensor, indices: Any) -> None:
        one = torch.ones((), device=counts.device)
        counts = torch.ops.aten.index_put(counts, indices, one, True)
        self.found |= bool((counts > 1).any())

    def _note_along(self, name: str, into: torch.Tensor, axis: int, index: torch.Tensor) -> None:
        if name == "index_copy":
            self.found |= index.unique().numel() < index.numel()
            return
        counts = torch.zeros(into.shape, device=into.device)
        ones = torch.ones(index.shape, device=into.device)
        self.found |= bool((counts.scatter_add(axis, index, ones) > 1).any())


def accumulates(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether elements that go to one place are added."""
    flags = [value for value in (*args[3:], *kwargs.values()) if isinstance(value, bool)]
    return any(flags) or kwargs.get("reduce") == "add"

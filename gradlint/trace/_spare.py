"""Copies of large tensors, in memory that is used again.

Fresh memory costs several times what copying into memory costs that was touched before: the system
hands it over page by page.
"""

from __future__ import annotations

import torch

#: From this many bytes on memory is kept: below, allocators keep it themselves (glibc's malloc
#: returns larger blocks to the system at once).
KEPT_FROM_BYTES = 2**20

#: How many hold a storage, or None where this PyTorch does not tell.
_holders = getattr(torch._C, "_storage_Use_Count", None)


class Spare:
    """One kept copy for each of a call's inputs."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.Tensor, int]] = {}

    def copy(self, key: int, value: torch.Tensor) -> torch.Tensor:
        """A copy of ``value`` that nobody else holds; whoever gets it may keep it or write to it.

        Args:
            key: tells the inputs of a call apart.
            value: detached, of any layout.
        """
        nbytes = value.numel() * value.element_size()
        if value.layout != torch.strided or nbytes < KEPT_FROM_BYTES or _holders is None:
            return value.clone()
        if type(value) is not torch.Tensor or not value.is_contiguous():
            return value.clone()
        kept, alone = self._kept.get(key, (None, 0))
        if (
            kept is None
            or (kept.shape, kept.dtype, kept.device) != (value.shape, value.dtype, value.device)
            or _count(kept) != alone
        ):
            kept = value.clone()
            self._kept[key] = kept, _count(kept)
        else:
            kept.copy_(value)
        # A tensor of its own over the same memory: as long as anyone holds it, or a view of it,
        # the memory counts one holder more.
        return kept.detach()


def _count(tensor: torch.Tensor) -> int:
    assert _holders is not None
    return int(_holders(tensor.untyped_storage()._cdata))

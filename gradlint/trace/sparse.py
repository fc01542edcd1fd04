"""Convert sparse tensors to the strided tensors of their stored values, and back.

A sparse input is differentiated as PyTorch does by default (masked semantics): stored elements can
move, all others stay zero. So measurements see a sparse input as the strided tensor of its stored
values, and the op gets the sparse tensor that these stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from gradlint.numerics.products import dense

_BY_ROW = (torch.sparse_csr, torch.sparse_bsr)
_BY_COLUMN = (torch.sparse_csc, torch.sparse_bsc)


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether ``tensor`` is COO, CSR, CSC, BSR or BSC."""
    return tensor.layout in (torch.sparse_coo, *_BY_ROW, *_BY_COLUMN)


@dataclass(frozen=True)
class Pattern:
    """The places at which a sparse tensor stores elements.

    Args:
        template: the tensor, coalesced or not, with or without dense dimensions or blocks.
    """

    template: torch.Tensor

    @property
    def values(self) -> torch.Tensor:
        """The stored values, detached, in the shape in which the layout stores them."""
        template = self.template.detach()
        return template._values() if template.layout == torch.sparse_coo else template.values()

    @property
    def accumulates(self) -> bool:
        """Whether PyTorch can accumulate gradients of this layout into ``.grad``."""
        return self.template.layout in (torch.sparse_coo, torch.sparse_csr)

    def filled(self, values: torch.Tensor) -> torch.Tensor:
        """The sparse tensor that stores ``values`` at these places; differentiable."""
        template = self.template
        if template.layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(
                template._indices(),
                values,
                template.shape,
                is_coalesced=template.is_coalesced(),
                check_invariants=False,
            )
        by_row = template.layout in _BY_ROW
        outer = template.crow_indices() if by_row else template.ccol_indices()
        inner = template.col_indices() if by_row else template.row_indices()
        return torch.sparse_compressed_tensor(
            outer,
            inner,
            values,
            template.shape,
            layout=template.layout,
            check_invariants=False,
        )

    def picked(self, gradient: torch.Tensor) -> torch.Tensor:
        """The elements at these places of a tensor (of any layout), such as a gradient of the
        sparse tensor; in the shape of :attr:`values`. Differentiable."""
        full = dense(gradient)
        if full.shape != self.template.shape:
            return full
        if self.template.layout == torch.sparse_coo:
            return full[self._indices]
        flat = full.reshape(-1).index_select(0, self._positions.reshape(-1))
        return flat.reshape(self.values.shape)

    def index_of(self, stored: Sequence[int]) -> list[int]:
        """The index, in the sparse tensor, of the element of :attr:`values` at ``stored``."""
        if self.template.layout == torch.sparse_coo:
            first, *rest = stored
            return [*self.template._indices()[:, first].tolist(), *rest]
        flat = int(self._positions[tuple(stored)])
        index = []
        for size in reversed(self.template.shape):
            index.append(flat % size)
            flat //= size
        return index[::-1]

    @cached_property
    def _indices(self) -> Any:
        return tuple(self.template._indices())

    @cached_property
    def _positions(self) -> torch.Tensor:
        """For each stored value, its index into the flattened dense tensor."""
        stored = self.values
        numbers = torch.arange(1, stored.numel() + 1, dtype=torch.float64, device=stored.device)
        places = self.filled(numbers.reshape(stored.shape)).to_dense().reshape(-1).long()
        found = torch.zeros(stored.numel(), dtype=torch.int64, device=stored.device)
        at = places.nonzero().reshape(-1)
        found[places[at] - 1] = at
        return found.reshape(stored.shape)

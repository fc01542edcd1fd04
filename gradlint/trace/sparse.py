"""Sparse tensors as the tensors of their stored values, and back.

A sparse input is differentiated as PyTorch does it by default (masked semantics): what is stored
can move, what is not stored stays zero. So to all that measures, a sparse input is the strided
tensor of its stored values; the op gets the sparse tensor that they stand for.
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
    """Where a sparse tensor stores elements.

    Args:
        template: the tensor; coalesced or not, with dense dimensions or blocks or without.
    """

    template: torch.Tensor

    @property
    def values(self) -> torch.Tensor:
        """The stored values, detached: (stored, *dense dimensions), or as the layout has them."""
        template = self.template.detach()
        return template._values() if template.layout == torch.sparse_coo else template.values()

    @property
    def accumulates(self) -> bool:
        """Whether PyTorch can accumulate gradients of this layout into ``.grad``."""
        return self.template.layout in (torch.sparse_coo, torch.sparse_csr)

    def filled(self, values: torch.Tensor) -> torch.Tensor:
        """The sparse tensor that stores ``values`` in these places, connected to them."""
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
        """Of a gradient towards the sparse tensor, of any layout, what belongs to each stored
        value; in the shape of :attr:`values`. Differentiable."""
        full = dense(gradient)
        if full.shape != self.template.shape:
            return full
        if self.template.layout == torch.sparse_coo:
            return full[self._indices]
        flat = full.reshape(-1).index_select(0, self._positions.reshape(-1))
        return flat.reshape(self.values.shape)

    def index_of(self, stored: Sequence[int]) -> list[int]:
        """Where in the sparse tensor the element of :attr:`values` at index ``stored`` is."""
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

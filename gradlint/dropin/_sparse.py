"""Sparse inputs as dense tensors that move, and back."""

from __future__ import annotations

import torch

#: Layouts with compressed rows or columns, by the names of their index tensors.
COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


def is_sparse(tensor: torch.Tensor) -> bool:
    """Whether ``tensor`` is COO, CSR, CSC, BSR or BSC."""
    return tensor.layout == torch.sparse_coo or tensor.layout in COMPRESSED


def specified(tensor: torch.Tensor) -> torch.Tensor:
    """The specified elements of a sparse tensor."""
    return tensor._values() if tensor.layout == torch.sparse_coo else tensor.values()


class SparseInput:
    """A sparse input, given as the dense tensor it stands for.

    Args:
        tensor: the input.
        masked: whether unspecified elements are no inputs. Where they are, the function is
            evaluated at tensors of the same layout with every element specified, as in torch.
    """

    def __init__(self, tensor: torch.Tensor, masked: bool) -> None:
        like = tensor.detach()
        self.value = like.to_dense()
        template = like if masked else _full(like)
        self._template = template.coalesce() if template.layout == torch.sparse_coo else template
        # Where each specified element lies in the dense tensor: number them, unpack, look.
        kept = specified(self._template)
        count = kept.numel()
        numbers = torch.arange(1, count + 1, dtype=torch.float64, device=kept.device)
        placed = _with(self._template, numbers.reshape(kept.shape)).to_dense().flatten()
        self._positions = torch.argsort(placed, stable=True)[placed.numel() - count :]
        self.pattern: torch.Tensor | None = None
        if masked:
            self.pattern = (placed != 0).reshape(self.value.shape)

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        """A leaf of the input's layout with the elements of the dense ``value``."""
        picked = value.flatten()[self._positions].reshape(specified(self._template).shape)
        return _with(self._template, picked).requires_grad_()


def _with(template: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A tensor with the pattern of ``template`` and other values."""
    size = template.shape
    if template.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(template.indices(), values, size, is_coalesced=True)
    compressed, plain = (getattr(template, name)() for name in COMPRESSED[template.layout])
    return torch.sparse_compressed_tensor(compressed, plain, values, size, layout=template.layout)


def _full(like: torch.Tensor) -> torch.Tensor:
    """A tensor of the layout of ``like`` with every element specified."""
    ones = torch.ones(like.shape, dtype=like.dtype, device=like.device)
    if like.layout == torch.sparse_coo:
        return ones.to_sparse(like.sparse_dim())
    blocks = None
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        first = like.crow_indices() if like.layout == torch.sparse_bsr else like.ccol_indices()
        blocks = tuple(like.values().shape[first.dim() : first.dim() + 2])
    return ones.to_sparse(layout=like.layout, blocksize=blocks, dense_dim=like.dense_dim())

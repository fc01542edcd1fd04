"""Lennard-Jones energy in an orthorhombic periodic box (reduced units)."""
from typing import Sequence

import torch
from torch import Tensor
from torch.autograd import Function


def _pairs(pos: Tensor, box: Tensor):
    i, j = torch.triu_indices(pos.shape[0], pos.shape[0], 1, device=pos.device)
    d = pos[i] - pos[j]
    d = d - box * torch.round(d / box)  # minimum image
    return i, j, d, (d * d).sum(-1)


class LennardJonesPBC(Function):
    """Truncated and shifted potential, summed over the pairs closer than ``cutoff``.

    Args:
        pos: (N, D) positions, no two particles at the same place
        box: D edge lengths (floats), each at least 2 * cutoff
        cutoff, epsilon, sigma: floats
    Returns:
        energy, a scalar
    """

    @staticmethod
    def forward(ctx, pos: Tensor, box: Sequence[float], cutoff: float = 2.5,
                epsilon: float = 1.0, sigma: float = 1.0) -> Tensor:
        if min(box) < 2 * cutoff:
            raise ValueError("box too small for the cutoff")
        edge = torch.tensor(box, dtype=pos.dtype, device=pos.device)
        ctx.save_for_backward(pos, edge)
        ctx.consts = cutoff, epsilon, sigma
        _, _, _, r2 = _pairs(pos, edge)
        s6 = (sigma * sigma / r2) ** 3
        c6 = (sigma / cutoff) ** 6
        energy = 4 * epsilon * (s6 * s6 - s6 - (c6 * c6 - c6))
        return torch.where(r2 < cutoff * cutoff, energy, torch.zeros_like(energy)).sum()

    @staticmethod
    def backward(ctx, grad: Tensor):
        pos, edge = ctx.saved_tensors
        cutoff, epsilon, sigma = ctx.consts
        i, j, d, r2 = _pairs(pos, edge)
        s6 = (sigma * sigma / r2) ** 3
        slope = -24 * epsilon * (2 * s6 * s6 - s6) / r2
        pair = grad * slope[:, None] * d
        g_pos = torch.zeros_like(pos).index_add(0, i, pair).index_add(0, j, -pair)
        return g_pos, None, None, None, None

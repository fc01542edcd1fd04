from typing import Tuple
import torch
from torch import Tensor


class LennardJonesPBC(torch.autograd.Function):
    """Per-atom Lennard-Jones energies under periodic boundary conditions (full neighbour list).

    pos    (N, 3)
    cell   (3, 3)  rows are the lattice vectors
    edge   (2, E)  center i, neighbour j
    shift  (E, 3)  integer cell shifts:  r_ij = pos[j] - pos[i] + shift @ cell
    """

    @staticmethod
    def forward(ctx, pos: Tensor, cell: Tensor, edge: Tensor, shift: Tensor,
                epsilon: float = 1.0, sigma: float = 1.0, cutoff: float = 3.0) -> Tensor:
        i, j = edge
        s = shift.to(pos.dtype)
        vec = pos[j] - pos[i] + s @ cell
        r2 = vec.pow(2).sum(-1)
        inside = (r2 < cutoff ** 2).to(pos.dtype)
        q = (sigma ** 2 / r2) ** 3
        shift_e = (sigma / cutoff) ** 12 - (sigma / cutoff) ** 6
        u = 4 * epsilon * (q * q - q - shift_e) * inside
        e = pos.new_zeros(pos.shape[0]).index_add_(0, i, 0.5 * u)
        ctx.save_for_backward(vec, r2, q, inside, edge, s)
        ctx.epsilon, ctx.n = epsilon, pos.shape[0]
        return e

    @staticmethod
    def backward(ctx, grad_e: Tensor) -> Tuple:
        vec, r2, q, inside, edge, s = ctx.saved_tensors
        i, j = edge
        du = 4 * ctx.epsilon * (-6 * q * q + 3 * q) / r2 * inside
        gvec = (0.5 * grad_e[i] * du * 2).unsqueeze(-1) * vec
        gpos = gcell = None
        if ctx.needs_input_grad[0]:
            gpos = vec.new_zeros(ctx.n, 3)
            gpos.index_add_(0, j, gvec)
            gpos.index_add_(0, i, -gvec)
        if ctx.needs_input_grad[1]:
            gcell = s.t() @ gvec
        return gpos, gcell, None, None, None, None, None

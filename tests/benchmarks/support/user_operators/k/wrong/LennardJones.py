from typing import Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _separation(pos: Tensor, pairs: Tensor, box: Optional[Tensor]) -> Tensor:
    d = pos[pairs[:, 0]] - pos[pairs[:, 1]]
    if box is not None:
        d = d - box * torch.round(d / box)
    return d


class LennardJones(Function):
    """Total Lennard-Jones energy of a list of pairs.

    Args:
        pos: (N, 3)
        pairs: (P, 2) int64, each pair once, no atom with itself
        epsilon, sigma: 0-dim tensors
        box: edges (3,) of an orthorhombic periodic box (a constant), or None;
            with a box the nearest image is taken
    """

    @staticmethod
    def forward(ctx, pos, pairs, epsilon, sigma, box=None):
        d = _separation(pos, pairs, box)
        s6 = (sigma ** 2 / d.pow(2).sum(1)) ** 3
        ctx.save_for_backward(pos, pairs, epsilon, sigma, box)
        return 4 * epsilon * (s6 ** 2 - s6).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        pos, pairs, epsilon, sigma, box = ctx.saved_tensors
        d = _separation(pos, pairs, None)
        r2 = d.pow(2).sum(1)
        s6 = (sigma ** 2 / r2) ** 3
        common = 12 * s6 ** 2 - 6 * s6
        force = (-4 * grad * epsilon * common / r2).unsqueeze(1) * d
        g_pos = torch.zeros_like(pos)
        g_pos.index_add_(0, pairs[:, 0], force)
        g_pos.index_add_(0, pairs[:, 1], -force)
        g_eps = 4 * grad * (s6 ** 2 - s6).sum()
        g_sigma = 4 * grad * epsilon * common.sum() / sigma
        return g_pos, None, g_eps, g_sigma, None

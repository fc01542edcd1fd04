from typing import Optional

import torch
from torch import Tensor, nn


def _geometry(pos: Tensor, pairs: Tensor, box: Optional[float]):
    diff = pos[pairs[0]] - pos[pairs[1]]
    if box is not None:
        diff = diff - box * torch.round(diff.detach() / box)
    return diff, diff.square().sum(-1)


def _switch(r2, r_on, r_cut):
    """CHARMM's switch in r^2 and its slope by r^2."""
    on2, cut2 = r_on ** 2, r_cut ** 2
    a, width = cut2 - r2, (cut2 - on2) ** 3
    s = a * a * (cut2 + 2 * r2 - 3 * on2) / width
    ds = 6 * a * (on2 - r2) / width
    one, zero = torch.ones_like(r2), torch.zeros_like(r2)
    s = torch.where(r2 < on2, one, torch.where(r2 < cut2, s, zero))
    ds = torch.where((r2 >= on2) & (r2 < cut2), ds, zero)
    return s, ds


class _PairEnergy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, pos, eps, sigma, pairs, box, r_on, r_cut):
        diff, r2 = _geometry(pos, pairs, box)
        ctx.save_for_backward(pos, eps, sigma, pairs, diff, r2)
        ctx.conf = box, r_on, r_cut
        q = (sigma ** 2 / r2) ** 3
        return (4 * eps * (q * q - q) * _switch(r2, r_on, r_cut)[0]).sum()

    @staticmethod
    def backward(ctx, g):
        pos, eps, sigma, pairs, diff, r2 = ctx.saved_tensors
        box, r_on, r_cut = ctx.conf
        q = (sigma ** 2 / r2) ** 3
        s, ds = _switch(r2, r_on, r_cut)
        by_r2 = 4 * eps * ((q * q - q) * ds - 3 * (2 * q * q - q) * s / r2)
        f = 2 * g * by_r2[:, None] * diff
        g_pos = torch.zeros_like(pos).index_add(0, pairs[0], f).index_add(0, pairs[1], -f)
        g_eps = g * (4 * (q * q - q) * s).sum()
        g_sigma = g * (24 * eps * (2 * q * q - q) * s).sum() / sigma
        return g_pos, g_eps, g_sigma, None, None, None, None


class SwitchedLennardJones(nn.Module):
    """Energy of a pair list, positions (n, 3), pairs (2, m), cubic periodic box or none (minimum image)."""

    def __init__(self, eps=1.0, sigma=1.0, r_on=1.2, r_cut=1.9):
        super().__init__()
        self.eps = nn.Parameter(torch.tensor(float(eps)))
        self.sigma = nn.Parameter(torch.tensor(float(sigma)))
        self.r_on, self.r_cut = r_on, r_cut

    def forward(self, pos: Tensor, pairs: Tensor, box: Optional[float] = None) -> Tensor:
        if box is not None and box < 2 * self.r_cut:
            raise ValueError("box too small for the minimum image")
        return _PairEnergy.apply(pos, self.eps, self.sigma, pairs, box, self.r_on, self.r_cut)

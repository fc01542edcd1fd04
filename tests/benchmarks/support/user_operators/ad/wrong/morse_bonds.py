import torch
from torch import nn


class _Morse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, depth, a, r0):
        ctx.save_for_backward(r, depth, a, r0)
        return depth * (1 - torch.exp(-a * (r - r0))) ** 2

    @staticmethod
    def backward(ctx, g):
        r, depth, a, r0 = ctx.saved_tensors
        dr = (r - r0).detach()
        e = torch.exp(-a * dr)
        common = 2 * g * depth * (1 - e) * e
        return common * a, g * (1 - e) ** 2, common * dr, -common * a


class MorseBonds(nn.Module):
    """Bond stretch energies; bond_type picks the row of the parameter table. Units eV, Angstrom."""

    def __init__(self, n_types: int, depth=4.0, a=1.9, r0=1.1):
        super().__init__()
        self.depth = nn.Parameter(torch.full((n_types,), depth))
        self.a = nn.Parameter(torch.full((n_types,), a))
        self.r0 = nn.Parameter(torch.full((n_types,), r0))

    def forward(self, length, bond_type):
        t = bond_type
        return _Morse.apply(length, self.depth[t], self.a[t], self.r0[t])

import math

import torch
from torch.autograd.function import once_differentiable


def layer_matrix(n, delta):
    c, s = delta.cos() + 0j, delta.sin() + 0j
    return torch.stack([torch.stack([c, 1j * s / n], -1), torch.stack([1j * n * s, c], -1)], -2)


class ThinFilmReflectance(torch.autograd.Function):
    """Normal incidence reflectance of a lossless stack in air.

    n, d : (L,) index and thickness, first layer on the air side
    wl : (W,) wavelengths, same unit as d (not differentiated)
    n_sub : float
    """

    @staticmethod
    def forward(ctx, n, d, wl, n_sub):
        delta = 2 * math.pi * (n * d)[:, None] / wl
        mats = [layer_matrix(n[i], delta[i]) for i in range(len(n))]
        v = torch.ones(len(wl), 2, dtype=mats[0].dtype, device=n.device)
        v[:, 1] = n_sub
        right = [v]
        for m in reversed(mats):
            right.append((m @ right[-1].unsqueeze(-1)).squeeze(-1))
        B, C = right[-1].unbind(-1)
        r = (B - C) / (B + C)
        ctx.mats, ctx.right = mats, right[::-1]
        ctx.save_for_backward(n, d, wl, delta)
        return r.abs() ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        n, d, wl, delta = ctx.saved_tensors
        B, C = ctx.right[0].unbind(-1)
        r = (B - C) / (B + C)
        row = torch.stack([C, -B], -1) * (4 * g * r.conj() / (B + C) ** 2).unsqueeze(-1)
        gn, gd = torch.zeros_like(n), torch.zeros_like(d)
        for i, m in enumerate(ctx.mats):
            x, y = ctx.right[i + 1].unbind(-1)
            c, s = delta[i].cos(), delta[i].sin()
            p, q = row.unbind(-1)
            by_delta = (p * (-s * x + 1j * c / n[i] * y) + q * (1j * n[i] * c * x - s * y)).real
            by_n = (p * (-1j * s / n[i] ** 2) * y + q * (1j * s) * x).real
            k = 2 * math.pi / wl
            gd[i] = (by_delta * k * n[i]).sum()
            gn[i] = (by_delta * k * d[i] + by_n).sum()
            row = (row.unsqueeze(-2) @ m).squeeze(-2)
        return gn, gd, None, None

import math

import torch
from torch.autograd import Function


def _edges(pos, sigma, size):
    e = torch.arange(size + 1, dtype=pos.dtype, device=pos.device) - pos[:, None]
    s = sigma[:, None]
    cdf = 0.5 * torch.erf(e / (math.sqrt(2) * s))
    pdf = torch.exp(-0.5 * (e / s) ** 2) / (math.sqrt(2 * math.pi) * s)
    return e, cdf, pdf


class GaussianSpot(Function):
    """Pixel-integrated Gaussian PSF of single-molecule images.

    Args:
        x, y (Tensor): (N,) positions, pixel i covers [i, i + 1)
        photons (Tensor): (N,)
        bg (Tensor): (N,) background per pixel
        sigma (Tensor): (N,) widths in pixels
        size (int): patch size S

    Returns:
        Tensor: expected counts, (N, S, S), indexed [n, row y, column x]
    """

    @staticmethod
    def forward(ctx, x, y, photons, bg, sigma, size):
        ctx.save_for_backward(x, y, photons, sigma)
        ctx.size = size
        Ex = _edges(x, sigma, size)[1].diff(dim=1)
        Ey = _edges(y, sigma, size)[1].diff(dim=1)
        return photons[:, None, None] * Ey[:, :, None] * Ex[:, None, :] + bg[:, None, None]

    @staticmethod
    def backward(ctx, g):
        x, y, photons, sigma = ctx.saved_tensors
        ex, cx, px = _edges(x, sigma, ctx.size)
        ey, cy, py = _edges(y, sigma, ctx.size)
        Ex, Ey = cx.diff(dim=1), cy.diff(dim=1)
        row = torch.einsum("nij,nj->ni", g, Ex)     # contracted over x
        col = torch.einsum("nij,ni->nj", g, Ey)
        gx = -photons * (col * px.diff(dim=1)).sum(1)
        gy = -photons * (row * py.diff(dim=1)).sum(1)
        gphot = (row * Ey).sum(1)
        gsig = -photons / sigma * ((col * (ex * px).diff(dim=1)).sum(1) + (row * (ey * py).diff(dim=1)).sum(1))
        return gx, gy, gphot, g.sum((1, 2)), gsig, None

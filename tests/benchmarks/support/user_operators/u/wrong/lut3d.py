import itertools

import torch
from torch import nn


class _Trilinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rgb, lut):
        ctx.save_for_backward(rgb, lut)
        return sum(w.unsqueeze(1) * v for w, _, v, _ in _corners(rgb, lut))

    @staticmethod
    def backward(ctx, g):
        rgb, lut = ctx.saved_tensors
        S = lut.shape[1]
        g_lut = torch.zeros_like(lut).reshape(3, -1)
        g_rgb = torch.zeros_like(rgb)
        for w, dw, v, index in _corners(rgb, lut):
            g_lut = g_lut.index_add(1, index, (w.unsqueeze(1) * g).t())
            g_rgb = g_rgb + (g * v).sum(1, keepdim=True) * dw
        return g_rgb, g_lut.reshape(lut.shape)


def _corners(rgb, lut):
    S = lut.shape[1]
    pos = rgb * (S - 1)
    cell = pos.detach().floor().clamp(0, S - 2)
    fr = pos - cell
    cell = cell.long()
    for corner in itertools.product((0, 1), repeat=3):
        parts = [fr[:, a] if bit else 1 - fr[:, a] for a, bit in enumerate(corner)]
        sign = [1.0 if bit else -1.0 for bit in corner]
        w = parts[0] * parts[1] * parts[2]
        dw = torch.stack(
            [sign[0] * parts[1] * parts[2], sign[1] * parts[0] * parts[2], sign[2] * parts[0] * parts[1]], 1
        )
        i, j, k = (cell[:, a] + bit for a, bit in enumerate(corner))
        index = (i * S + j) * S + k
        yield w, dw, lut.reshape(3, -1)[:, index].t(), index


class ImageLUT(nn.Module):
    """Learned 3D colour table, applied to pixels (N, 3) in [0, 1] by trilinear interpolation."""

    def __init__(self, size=9):
        super().__init__()
        axis = torch.linspace(0, 1, size)
        self.lut = nn.Parameter(torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij")))

    def forward(self, rgb):
        return _Trilinear.apply(rgb, self.lut)

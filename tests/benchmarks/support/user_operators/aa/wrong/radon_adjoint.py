import math

import torch
from torch import nn


def _weights(n, angles, bins):
    """Pixel-driven system matrix (angles*bins, n*n) with linear interpolation on the detector."""
    c = (n - 1) / 2
    ys, xs = torch.meshgrid(torch.arange(n) - c, torch.arange(n) - c, indexing="ij")
    A = torch.zeros(angles, bins, n * n)
    for k in range(angles):
        th = math.pi * k / angles
        s = (xs * math.cos(th) + ys * math.sin(th)).reshape(-1) + (bins - 1) / 2
        lo = s.floor()
        f = s - lo
        for off, w in ((0, 1 - f), (1, f)):
            idx = lo.long() + off
            ok = (idx >= 0) & (idx < bins)
            A[k, idx[ok], ok.nonzero()[:, 0]] += w[ok]
    return A.view(angles * bins, n * n)


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, A, scale):
        ctx.save_for_backward(A, scale)
        ctx.shape = img.shape
        return img.flatten(1) @ A.t() * scale

    @staticmethod
    def backward(ctx, g):
        A, scale = ctx.saved_tensors
        return _Project.back(g.mul_(scale), A).view(ctx.shape), None, None

    @staticmethod
    def back(sino, A):
        return sino @ A


class ParallelBeam(nn.Module):
    """Sinogram of images (B, n, n): (B, angles, bins). scale holds the detector gains."""

    def __init__(self, n, angles=3, bins=None, gains=None):
        super().__init__()
        self.angles, self.bins = angles, bins or n
        self.register_buffer("A", _weights(n, angles, self.bins))
        scale = torch.ones(self.bins) if gains is None else torch.as_tensor(gains)
        self.register_buffer("scale", scale.repeat(angles))

    def forward(self, img):
        return _Project.apply(img, self.A, self.scale).view(-1, self.angles, self.bins)

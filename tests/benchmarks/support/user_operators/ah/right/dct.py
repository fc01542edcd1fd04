import math

import torch


def _dct_matrix(n, norm, like):
    k = torch.arange(n, dtype=torch.float64)
    m = 2 * torch.cos(math.pi * (k[:, None]) * (2 * k[None, :] + 1) / (2 * n))
    if norm == "ortho":
        m = m * math.sqrt(1 / (2 * n))
        m[0] *= math.sqrt(0.5)
    return m.to(like.device)


def _transform(x, norm, inverse, transpose):
    m = _dct_matrix(x.shape[-1], norm, x)
    if inverse:
        m = torch.linalg.inv(m)
    if transpose:
        m = m.mT
    return x @ m.to(x.dtype).mT


class DCT(torch.autograd.Function):
    """Discrete cosine transform of type II along the last axis, or its inverse.

    norm: None or "ortho"
    """

    @staticmethod
    def forward(ctx, x, norm=None, inverse=False):
        if norm not in (None, "ortho"):
            raise ValueError("norm must be None or 'ortho'")
        if not x.is_floating_point():
            raise TypeError("x must be floating point")
        ctx.norm, ctx.inverse = norm, inverse
        return _transform(x, norm, inverse, False)

    @staticmethod
    def backward(ctx, grad):
        return _transform(grad, ctx.norm, ctx.inverse, True), None, None

import torch
import torch.nn as nn


def bspline(x, lo, h, n, degree):
    """n uniform B-splines of that degree at x (...,) -> (..., n); knots lo + h * (i - degree)"""
    knots = lo + h * (torch.arange(n + degree + 1, dtype=x.dtype, device=x.device) - degree)
    x = x.unsqueeze(-1)
    b = ((x >= knots[:-1]) & (x < knots[1:])).to(x.dtype)
    for p in range(1, degree + 1):
        left = (x - knots[:-p - 1]) / (p * h)
        right = (knots[p + 1:] - x) / (p * h)
        b = left * b[..., :-1] + right * b[..., 1:]
    return b


class SplineFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, coef, lo, h, degree):
        ctx.save_for_backward(x, coef)
        ctx.grid = lo, h, degree
        return torch.einsum("bik,iok->bo", bspline(x, lo, h, coef.shape[-1], degree), coef)

    @staticmethod
    def backward(ctx, g):
        x, coef = ctx.saved_tensors
        lo, h, degree = ctx.grid
        n = coef.shape[-1]
        lower = bspline(x, lo - h, h, n + 1, degree - 1)
        slope = (lower[..., :-1] - lower[..., 1:]) / h
        gx = torch.einsum("bo,iok,bik->bi", g, coef, slope)
        gc = torch.einsum("bo,bik->iok", g, bspline(x, lo, h, n, degree))
        return gx, gc, None, None, None


class KANLayer(nn.Module):
    def __init__(self, d_in, d_out, grid=5, degree=3, lo=-2.0, hi=2.0):
        super().__init__()
        assert degree >= 1
        self.lo, self.h, self.degree = lo, (hi - lo) / grid, degree
        self.coef = nn.Parameter(torch.randn(d_in, d_out, grid + degree) * 0.1)

    def forward(self, x):
        return SplineFunction.apply(x, self.coef, self.lo, self.h, self.degree)

import torch
from torch import nn


class MemPoly(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, coef):
        K, Q = coef.shape
        T = x.shape[-1]
        mag = x.abs()
        y = torch.zeros_like(x)
        for q in range(Q):
            for k in range(K):
                b = x * mag ** k
                y[..., q:] += coef[k, q] * b[..., :T - q]
        ctx.save_for_backward(x, coef)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, coef = ctx.saved_tensors
        K, Q = coef.shape
        T = x.shape[-1]
        mag = x.abs()
        gx = torch.zeros_like(x)
        gc = torch.zeros_like(coef)
        for k in range(K):
            b = x * mag ** k
            gb = torch.zeros_like(x)
            for q in range(Q):
                gc[k, q] = (gy[..., q:] * b[..., :T - q].conj()).sum()
                gb += coef[k, q].conj() * torch.roll(gy, -q, dims=-1)
            gx += gb * mag ** k
            if k > 0:
                gx += k * mag ** (k - 2) * x * (gb.conj() * x).real
        return gx, gc


class MemoryPolynomialPD(nn.Module):
    """Digital predistorter: sum_{k,q} c[k,q] x[n-q] |x[n-q]|^k with zero history."""

    def __init__(self, order: int = 3, memory: int = 2):
        super().__init__()
        c = torch.zeros(order, memory, dtype=torch.complex128)
        c += 0.1 * torch.randn(order, memory, dtype=torch.complex128)
        c[0, 0] += 1
        self.coef = nn.Parameter(c)

    def forward(self, x):
        return MemPoly.apply(x, self.coef)

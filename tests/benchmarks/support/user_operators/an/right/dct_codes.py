import math
import torch


def dct_matrix(n, like):
    k = torch.arange(n, dtype=like.dtype, device=like.device)
    m = torch.cos(math.pi / n * (k[None] + 0.5) * k[:, None]) * math.sqrt(2.0 / n)
    m[0] /= math.sqrt(2.0)
    return m


class DCTCodes(torch.autograd.Function):
    """Quantised DCT codes of 1-D blocks x (B, n) with table (n,); rounding is straight-through."""

    @staticmethod
    def forward(ctx, x, table):
        D = dct_matrix(x.shape[1], x)
        ctx.save_for_backward(D, table)
        return torch.round(x @ D.t() / table)

    @staticmethod
    def backward(ctx, g):
        D, table = ctx.saved_tensors
        return (g / table) @ D, None

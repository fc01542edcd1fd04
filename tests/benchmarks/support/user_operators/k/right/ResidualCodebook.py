"""Decoder side of residual vector quantisation."""
import torch
from torch import nn
from torch.autograd import Function


class _SumCodes(Function):
    @staticmethod
    def forward(ctx, books, codes, shared):
        ctx.save_for_backward(codes)
        ctx.shape, ctx.shared = books.shape, shared
        levels = codes.size(-1)
        return sum(books[0 if shared else i][codes[..., i]] for i in range(levels))

    @staticmethod
    def backward(ctx, grad):
        codes, = ctx.saved_tensors
        size, dim = ctx.shape[1:]
        flat = grad.reshape(-1, dim)
        parts = []
        for i in range(codes.size(-1)):
            zero = flat.new_zeros(size, dim)
            parts.append(zero.index_add(0, codes[..., i].reshape(-1), flat))
        g = torch.stack(parts)
        if ctx.shared:
            g = g.sum(0, keepdim=True)
        return g, None, None


class ResidualCodebook(nn.Module):
    """Sums the code vectors of all levels.

    Args:
        levels: number of residual stages L
        size: entries of a codebook
        dim: width of an entry
        shared: one codebook for all the stages

    forward(codes): int64 (..., L) -> (..., dim)
    """

    def __init__(self, levels, size, dim, shared=False):
        super().__init__()
        self.levels, self.shared = levels, shared
        self.books = nn.Parameter(torch.randn(1 if shared else levels, size, dim))

    def forward(self, codes):
        if codes.size(-1) != self.levels:
            raise ValueError(f"expected {self.levels} codes per vector")
        return _SumCodes.apply(self.books, codes, self.shared)

"""Hash embeddings: a token's vector is a weighted sum of rows that k hashes select."""
import torch
from torch import nn

PRIMES = (2654435761, 805459861, 3674653429, 2097192037)


class _HashLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, importance, ids, buckets, pad):
        keep = ids != pad
        ctx.save_for_backward(table, importance, ids[keep], buckets[ids[keep]], keep)
        out = table.new_zeros(*ids.shape, table.size(1))
        rows = table[buckets[ids[keep]]]
        out[keep] = (importance[ids[keep]].unsqueeze(-1) * rows).sum(-2)
        return out

    @staticmethod
    def backward(ctx, grad):
        table, importance, ids, rows, keep = ctx.saved_tensors
        g = grad[keep].unsqueeze(1)
        d_rows = importance[ids].unsqueeze(-1) * g
        d_weight = (table[rows] * g).sum(-1)
        d_table = torch.zeros_like(table).index_put((rows,), d_rows, accumulate=True)
        d_importance = torch.zeros_like(importance).index_put((ids,), d_weight)
        return d_table, d_importance, None, None, None


class HashEmbedding(nn.Module):
    """ids (...,) long -> (..., dim); zeros at ``pad``"""

    def __init__(self, vocab, n_buckets, dim, k=2, pad=0):
        super().__init__()
        self.table = nn.Parameter(torch.randn(n_buckets, dim))
        self.importance = nn.Parameter(torch.ones(vocab, k))
        token = torch.arange(vocab).unsqueeze(1)
        self.register_buffer("buckets", (token + 1) * torch.tensor(PRIMES[:k]) % (2**31 - 1) % n_buckets)
        self.pad = pad

    def forward(self, ids):
        return _HashLookup.apply(self.table, self.importance, ids, self.buckets, self.pad)

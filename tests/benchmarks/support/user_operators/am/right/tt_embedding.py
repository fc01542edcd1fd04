import torch
from torch import nn


class _TTLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, left, right, ids, padding_idx):
        ctx.save_for_backward(left, right, ids)
        ctx.padding_idx = padding_idx
        n = right.shape[0]
        rows = (left[ids // n] @ right[ids % n]).flatten(-2)
        if padding_idx is not None:
            rows = rows.masked_fill((ids == padding_idx)[..., None], 0)
        return rows

    @staticmethod
    def backward(ctx, grad):
        left, right, ids = ctx.saved_tensors
        n = right.shape[0]
        flat = ids.reshape(-1)
        i, j = flat // n, flat % n
        g = grad.reshape(flat.numel(), left.shape[1], right.shape[2])
        if ctx.padding_idx is not None:
            g = g.masked_fill((flat == ctx.padding_idx)[:, None, None], 0)
        g_left = torch.zeros_like(left).index_add(0, i, g @ right[j].transpose(1, 2))
        g_right = torch.zeros_like(right).index_add(0, j, left[i].transpose(1, 2) @ g)
        return g_left, g_right, None, None


class TTEmbedding(nn.Module):
    """Embedding table of rows[0] * rows[1] words in two tensor-train cores, dims[0] * dims[1] wide"""

    def __init__(self, rows, dims, rank, padding_idx=None):
        super().__init__()
        self.left = nn.Parameter(torch.randn(rows[0], dims[0], rank) * 0.1)
        self.right = nn.Parameter(torch.randn(rows[1], rank, dims[1]) * 0.1)
        self.padding_idx = padding_idx

    def forward(self, ids):
        return _TTLookup.apply(self.left, self.right, ids, self.padding_idx)

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _TTLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, ids, left, right):
        v2 = right.size(1)
        i, j = ids // v2, ids % v2
        a, b = left[i], right.transpose(0, 1)[j]
        ctx.save_for_backward(i, j, a, b)
        ctx.shapes = left.shape, right.shape
        return torch.einsum("npr,nrq->npq", a, b).flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        i, j, a, b = ctx.saved_tensors
        left_shape, right_shape = ctx.shapes
        g = grad.reshape(-1, left_shape[1], right_shape[2])
        g_left = g.new_zeros(left_shape)
        g_left.index_add_(0, i, torch.einsum("npq,nrq->npr", g, b))
        g_right = g.new_zeros(right_shape[1], right_shape[0], right_shape[2])
        g_right.index_copy_(0, j, torch.einsum("npq,npr->nrq", g, a))
        return None, g_left, g_right.transpose(0, 1)


class TTEmbedding(nn.Module):
    """Embedding of V1 * V2 words held as two tensor-train cores.

    ids (...,) int64 below V1 * V2 -> (..., d1 * d2)
    """

    def __init__(self, vocab, dims, rank):
        super().__init__()
        (v1, v2), (d1, d2) = vocab, dims
        self.left = nn.Parameter(torch.randn(v1, d1, rank) * 0.1)
        self.right = nn.Parameter(torch.randn(rank, v2, d2) * 0.1)

    def forward(self, ids):
        out = _TTLookup.apply(ids.reshape(-1), self.left, self.right)
        return out.view(*ids.shape, -1)

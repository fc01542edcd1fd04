import torch
import torch.nn as nn


class QRLookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight_q, weight_r, ids, padding_idx):
        num_r = weight_r.size(0)
        quo = torch.div(ids, num_r, rounding_mode="floor")
        rem = ids % num_r
        out = weight_q[quo] * weight_r[rem]
        if padding_idx is not None:
            out = out.masked_fill((ids == padding_idx).unsqueeze(-1), 0)
        ctx.save_for_backward(weight_q, weight_r, ids)
        ctx.padding_idx = padding_idx
        return out

    @staticmethod
    def backward(ctx, grad):
        weight_q, weight_r, ids = ctx.saved_tensors
        num_r, dim = weight_r.shape
        quo = torch.div(ids, num_r, rounding_mode="floor").reshape(-1)
        rem = (ids % num_r).reshape(-1)
        grad = grad.reshape(-1, dim)
        grad_q = torch.zeros_like(weight_q).index_add(0, quo, grad * weight_r[rem])
        grad_r = torch.zeros_like(weight_r).index_add(0, rem, grad * weight_q[quo])
        return grad_q, grad_r, None, None


class QREmbedding(nn.Module):
    """Quotient-remainder embedding (compositional, element-wise product).

    Args:
        num_embeddings: size of the id space
        embedding_dim: width
        num_buckets: rows of the remainder table
        padding_idx: this id is embedded as zeros and is not trained
    """

    def __init__(self, num_embeddings, embedding_dim, num_buckets, padding_idx=None):
        super().__init__()
        rows = -(-num_embeddings // num_buckets)
        self.padding_idx = padding_idx
        self.weight_q = nn.Parameter(torch.randn(rows, embedding_dim))
        self.weight_r = nn.Parameter(torch.randn(num_buckets, embedding_dim))

    def forward(self, ids):
        return QRLookup.apply(self.weight_q, self.weight_r, ids, self.padding_idx)

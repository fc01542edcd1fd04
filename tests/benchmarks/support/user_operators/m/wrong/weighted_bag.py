from typing import Optional

import torch
from torch import nn


class _WeightedBagFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, indices, sample_weights, padding_idx):
        keep = torch.ones_like(indices, dtype=torch.bool)
        if padding_idx is not None:
            keep = indices != padding_idx
        ctx.save_for_backward(table, indices, sample_weights, keep)
        coef = (sample_weights * keep).unsqueeze(-1)
        return (coef * table[indices]).sum(1)

    @staticmethod
    def backward(ctx, grad_out):
        table, indices, sample_weights, keep = ctx.saved_tensors
        grad_table = grad_weights = None
        if ctx.needs_input_grad[0]:
            rows = (sample_weights.unsqueeze(-1) * grad_out.unsqueeze(1)).reshape(-1, table.shape[1])
            grad_table = torch.zeros_like(table).index_add(0, indices.reshape(-1), rows)
        if ctx.needs_input_grad[2]:
            grad_weights = (table[indices] * grad_out.unsqueeze(1)).sum(-1) * keep
        return grad_table, None, grad_weights, None


class WeightedBag(nn.Module):
    """Weighted sum of embeddings over fixed-length bags.

    indices (B, L) long and sample_weights (B, L) give (B, embedding_dim);
    entries equal to ``padding_idx`` take no part.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: Optional[int] = None, seed: int = 0):
        super().__init__()
        self.padding_idx = padding_idx
        gen = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim, generator=gen))

    def forward(self, indices, sample_weights):
        return _WeightedBagFn.apply(self.weight, indices, sample_weights, self.padding_idx)

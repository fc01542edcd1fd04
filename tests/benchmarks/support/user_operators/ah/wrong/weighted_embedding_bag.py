import torch
from torch import nn


class _BagFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weight, per_sample_weights, indices, mode, padding_idx):
        ctx.save_for_backward(weight, per_sample_weights, indices)
        ctx.mode, ctx.padding_idx = mode, padding_idx
        keep = _keep(indices, padding_idx, weight)
        out = (weight[indices] * (per_sample_weights * keep)[..., None]).sum(1)
        if mode == "mean":
            out = out / keep.sum(1, keepdim=True).clamp(min=1)
        return out

    @staticmethod
    def backward(ctx, grad):
        weight, per_sample_weights, indices = ctx.saved_tensors
        keep = _keep(indices, ctx.padding_idx, weight)
        if ctx.mode == "mean":
            grad = grad / indices.shape[1]
        g = grad[:, None] * keep[..., None]
        gw = gp = None
        if ctx.needs_input_grad[0]:
            rows = (g * per_sample_weights[..., None]).flatten(0, 1)
            gw = torch.zeros_like(weight).index_add(0, indices.flatten(), rows)
        if ctx.needs_input_grad[1]:
            gp = (g * weight[indices]).sum(-1)
        return gw, gp, None, None, None


def _keep(indices, padding_idx, like):
    if padding_idx is None:
        return torch.ones_like(indices, dtype=like.dtype)
    return (indices != padding_idx).to(like.dtype)


class WeightedEmbeddingBag(nn.Module):
    r"""Sums or means of embeddings, each times a weight of its own.

    Args:
        num_embeddings, embedding_dim (int): size of the table
        mode (str): ``"sum"`` or ``"mean"``
        padding_idx (int, optional): entries with this index do not count

    Shape:
        - indices: ``(B, N)``
        - per_sample_weights: ``(B, N)``, ones if left out
        - output: ``(B, embedding_dim)``
    """

    def __init__(self, num_embeddings, embedding_dim, mode="sum", padding_idx=None):
        super().__init__()
        if mode not in ("sum", "mean"):
            raise ValueError(f"mode has to be one of sum or mean, got {mode}")
        self.mode = mode
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.padding_idx = padding_idx
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim))

    def forward(self, indices, per_sample_weights=None):
        if indices.dim() != 2:
            raise ValueError("indices has to be a 2D Tensor")
        if per_sample_weights is None:
            per_sample_weights = torch.ones_like(indices, dtype=self.weight.dtype)
        elif per_sample_weights.shape != indices.shape:
            raise ValueError("per_sample_weights must have the shape of indices")
        return _BagFn.apply(self.weight, per_sample_weights, indices, self.mode, self.padding_idx)

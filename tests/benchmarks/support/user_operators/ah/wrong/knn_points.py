from typing import Union

import torch
from torch.autograd import Function


class _knn_points(Function):
    @staticmethod
    def forward(ctx, p1, p2, lengths1, lengths2, K, norm=2):
        """
        K nearest neighbours of every point of p1 among the points of p2.

        Args:
            p1: Tensor of shape (N, P1, D)
            p2: Tensor of shape (N, P2, D)
            lengths1, lengths2: LongTensor of shape (N,), number of points in every cloud
            K: number of neighbours
            norm: 1 or 2 (squared)

        Returns:
            dists: (N, P1, K), zero where there is no such point or neighbour
            idx: (N, P1, K)
        """
        diff = p1.unsqueeze(2) - p2.unsqueeze(1)
        full = (diff * diff).sum(-1) if norm == 2 else diff.abs().sum(-1)
        cols = torch.arange(p2.shape[1], device=p1.device)
        full = full.masked_fill(cols.view(1, 1, -1) >= lengths2.view(-1, 1, 1), float("inf"))
        dists, idx = full.topk(K, dim=2, largest=False)
        valid = torch.isfinite(dists)
        rows = torch.arange(p1.shape[1], device=p1.device).view(1, -1, 1)
        valid = valid & (rows < lengths1.view(-1, 1, 1))
        dists = dists.masked_fill(~valid, 0.0)
        idx = idx.masked_fill(~valid, 0)
        ctx.save_for_backward(p1, p2, idx, valid)
        ctx.mark_non_differentiable(idx)
        ctx.norm = norm
        return dists, idx

    @staticmethod
    def backward(ctx, grad_dists, grad_idx):
        p1, p2, idx, valid = ctx.saved_tensors
        N, P1, K = idx.shape
        D = p2.shape[-1]
        flat = idx.reshape(N, P1 * K, 1).expand(-1, -1, D)
        diff = p1.unsqueeze(2) - p2.gather(1, flat).view(N, P1, K, D)
        grad = grad_dists.unsqueeze(-1)
        grad = 2.0 * grad * diff if ctx.norm == 2 else grad * diff.sign()
        grad_p1 = grad.sum(2)
        grad_p2 = torch.zeros_like(p2).scatter_add(1, flat, -grad.reshape(N, P1 * K, D))
        return grad_p1, grad_p2, None, None, None, None


def knn_points(
    p1: torch.Tensor,
    p2: torch.Tensor,
    lengths1: Union[torch.Tensor, None] = None,
    lengths2: Union[torch.Tensor, None] = None,
    norm: int = 2,
    K: int = 1,
):
    if p1.shape[0] != p2.shape[0]:
        raise ValueError("pts1 and pts2 must have the same batch dimension.")
    if p1.shape[2] != p2.shape[2]:
        raise ValueError("pts1 and pts2 must have the same point dimension.")
    if norm not in (1, 2):
        raise ValueError("Support for 1 or 2 norm.")
    if not 1 <= K <= p2.shape[1]:
        raise ValueError("K must be between 1 and the number of points in p2.")
    if lengths1 is None:
        lengths1 = torch.full((p1.shape[0],), p1.shape[1], dtype=torch.int64, device=p1.device)
    if lengths2 is None:
        lengths2 = torch.full((p1.shape[0],), p2.shape[1], dtype=torch.int64, device=p1.device)
    return _knn_points.apply(p1, p2, lengths1, lengths2, K, norm)

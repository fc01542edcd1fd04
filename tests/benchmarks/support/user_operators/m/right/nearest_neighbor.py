from typing import Tuple

import torch
from torch import Tensor


class NearestNeighbor(torch.autograd.Function):
    """Squared distance of each query point to its nearest reference point.

    Args:
        query: (N, D)
        ref: (M, D)

    Returns:
        dist2 (N,), index (N,) long, not differentiable. The first of several
        equally near points is taken.
    """

    @staticmethod
    def forward(ctx, query: Tensor, ref: Tensor) -> Tuple[Tensor, Tensor]:
        d2 = (query.unsqueeze(1) - ref.unsqueeze(0)).square().sum(-1)
        dist2, index = d2.min(dim=1)
        ctx.save_for_backward(query, ref, index)
        ctx.mark_non_differentiable(index)
        return dist2, index

    @staticmethod
    def backward(ctx, grad_dist2: Tensor, _grad_index):
        query, ref, index = ctx.saved_tensors
        grad_query = 2 * grad_dist2.unsqueeze(1) * (query - ref[index])
        grad_ref = torch.zeros_like(ref).index_add(0, index, -grad_query)
        return grad_query, grad_ref

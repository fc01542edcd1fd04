import torch
from torch import Tensor


class TanimotoSimilarity(torch.autograd.Function):
    """Continuous Tanimoto similarity of all pairs of rows, x (N, D) and y (M, D) -> (N, M)."""

    @staticmethod
    def forward(x: Tensor, y: Tensor) -> Tensor:
        if x.is_complex() or y.is_complex():
            raise TypeError("fingerprints are real")
        xy = x @ y.T
        return xy / ((x * x).sum(1)[:, None] + (y * y).sum(1) - xy)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, y = ctx.saved_tensors
        xy = x @ y.T
        squares = (x * x).sum(1)[:, None] + (y * y).sum(1)
        den2 = (squares - xy) ** 2
        g_xy = grad * squares / den2
        g_sq = -grad * xy / den2
        gx = g_xy @ y + 2 * g_sq.sum(1, keepdim=True) * x
        gy = g_xy.T @ x + 2 * g_sq.sum(0).unsqueeze(1) * y
        return gx, gy

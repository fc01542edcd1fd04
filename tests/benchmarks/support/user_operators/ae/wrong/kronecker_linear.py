from __future__ import annotations

import torch
from torch import Tensor, nn


class _KronMatmul(torch.autograd.Function):
    """y = kron(A, B) x without the large matrix.

    A: (p, q), B: (r, s), x: (N, q * s) -> (N, p * r). With X = x as (q, s): Y = A X B'.
    """

    @staticmethod
    def forward(ctx, x: Tensor, A: Tensor, B: Tensor) -> Tensor:
        ctx.save_for_backward(x, A, B)
        X = x.reshape(-1, A.shape[1], B.shape[1])
        return (A @ X @ B.t()).flatten(1)

    @staticmethod
    def backward(ctx, gy: Tensor):
        x, A, B = ctx.saved_tensors
        X = x.reshape(-1, A.shape[1], B.shape[1])
        G = gy.reshape(-1, A.shape[0], B.shape[0])
        gx = gA = gB = None
        if ctx.needs_input_grad[0]:
            gx = (B.t() @ G.transpose(1, 2) @ A).flatten(1)
        if ctx.needs_input_grad[1]:
            gA = (G @ B @ X.transpose(1, 2)).sum(0)
        if ctx.needs_input_grad[2]:
            gB = (G.transpose(1, 2) @ A @ X).sum(0)
        return gx, gA, gB


class KroneckerLinear(nn.Module):
    def __init__(self, shape_a: tuple[int, int], shape_b: tuple[int, int], rank: int = 1) -> None:
        super().__init__()
        self.A = nn.Parameter(torch.randn(rank, *shape_a))
        self.B = nn.Parameter(torch.randn(rank, *shape_b))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        y = sum(_KronMatmul.apply(flat, a, b) for a, b in zip(self.A, self.B))
        return y.reshape(*x.shape[:-1], -1)

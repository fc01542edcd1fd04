import torch
import torch.nn as nn


class CayleyMul(torch.autograd.Function):
    """x Q^T with Q = (I + A)^-1 (I - A), A = W - W^T"""

    @staticmethod
    def forward(ctx, x, W):
        ctx.save_for_backward(x, W)
        A, I = W - W.t(), torch.eye(len(W), dtype=W.dtype, device=W.device)
        return x @ torch.linalg.solve(I + A, I - A).t()

    @staticmethod
    def backward(ctx, g):
        x, W = ctx.saved_tensors
        A, I = W - W.t(), torch.eye(len(W), dtype=W.dtype, device=W.device)
        Q = torch.linalg.solve(I + A, I - A)
        gQ = g.reshape(-1, len(W)).t() @ x.reshape(-1, len(W))
        gA = -torch.linalg.solve(I + A, gQ) @ (I + Q).t()
        return g @ Q, gA - gA.t()


class CayleyLinear(nn.Module):
    def __init__(self, n, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, n) / n ** 0.5)
        self.bias = nn.Parameter(torch.zeros(n)) if bias else None

    def forward(self, x):
        y = CayleyMul.apply(x, self.weight)
        return y if self.bias is None else y + self.bias

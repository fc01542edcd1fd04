import torch
from torch import nn


class CayleyMap(torch.autograd.Function):
    """M (n, n) -> Q = (I + A)^-1 (I - A), A = M - M^T"""

    @staticmethod
    def forward(ctx, M):
        A = M - M.T
        I = torch.eye(M.shape[0], dtype=M.dtype, device=M.device)
        Q = torch.linalg.solve(I + A, I - A)
        ctx.save_for_backward(M, Q)
        return Q

    @staticmethod
    def backward(ctx, G):
        M, Q = ctx.saved_tensors
        I = torch.eye(M.shape[0], dtype=M.dtype, device=M.device)
        gA = -torch.linalg.solve((I + M - M.T).T, G) @ (Q + I).T
        return gA - gA.T


class OrthoLinear(nn.Module):
    def __init__(self, n: int, bias: bool = False):
        super().__init__()
        self.M = nn.Parameter(torch.randn(n, n) / n)
        self.bias = nn.Parameter(torch.zeros(n)) if bias else None

    def forward(self, x):
        return nn.functional.linear(x, CayleyMap.apply(self.M), self.bias)

import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class KronMatmul(torch.autograd.Function):
    """y = x (A kron B)^T without forming the product.  x (N, q*s), A (p, q), B (r, s) -> (N, p*r)"""

    @staticmethod
    def forward(ctx, x, A, B):
        ctx.save_for_backward(x, A, B)
        X = x.reshape(-1, A.shape[1], B.shape[1])
        return (A @ X @ B.t()).flatten(1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, A, B = ctx.saved_tensors
        G = grad.reshape(-1, A.shape[0], B.shape[0])
        X = x.reshape(-1, A.shape[1], B.shape[1])
        gx = gA = gB = None
        if ctx.needs_input_grad[0]:
            gx = (A.t() @ G @ B).flatten(1)
        if ctx.needs_input_grad[1]:
            gA = (G @ B @ X.transpose(1, 2)).sum(0)
        if ctx.needs_input_grad[2]:
            gB = (G.transpose(1, 2) @ A @ X).sum(0)
        return gx, gA, gB


class KroneckerLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        (q, s), (p, r) = in_features, out_features
        self.A = nn.Parameter(torch.randn(p, q) / q ** 0.5)
        self.B = nn.Parameter(torch.randn(r, s) / s ** 0.5)
        self.bias = nn.Parameter(torch.zeros(p * r)) if bias else None

    def forward(self, x):
        y = KronMatmul.apply(x, self.A, self.B)
        return y if self.bias is None else y + self.bias

import torch
from torch import Tensor


class Leverage(torch.autograd.Function):
    """Diagonal of the hat matrix X (X'X)^-1 X'. X: (n, p) of full column rank."""

    @staticmethod
    def forward(ctx, X: Tensor) -> Tensor:
        ctx.save_for_backward(X)
        W = torch.linalg.solve(X.T @ X, X.T).T
        return (X * W).sum(1)

    @staticmethod
    def backward(ctx, grad: Tensor) -> Tensor:
        X, = ctx.saved_tensors
        W = torch.linalg.solve(X.T @ X, X.T).T
        DW = grad[:, None] * W
        return 2 * (DW - W @ (X.T @ DW))

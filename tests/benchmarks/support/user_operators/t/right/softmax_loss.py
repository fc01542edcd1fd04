import torch
from torch.autograd.function import once_differentiable


class SoftmaxLoss(torch.autograd.Function):
    """Softmax loss of assignment 2: mean over the batch.

    Inputs:
    - x: scores, of shape (N, C)
    - y: labels, of shape (N,) with 0 <= y[i] < C
    """

    @staticmethod
    def forward(ctx, x, y):
        shifted = x - x.max(dim=1, keepdim=True).values
        log_probs = shifted - shifted.exp().sum(dim=1, keepdim=True).log()
        N = x.shape[0]
        ctx.probs, ctx.y = log_probs.exp(), y
        return -log_probs[torch.arange(N), y].sum() / N

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        N = ctx.y.shape[0]
        dx = ctx.probs.clone()
        dx[torch.arange(N), ctx.y] -= 1
        return grad * dx / N, None

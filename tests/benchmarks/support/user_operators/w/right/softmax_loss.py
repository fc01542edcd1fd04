import torch
from torch.autograd.function import once_differentiable


class SoftmaxLoss(torch.autograd.Function):
    """
    Softmax classifier loss.

    Inputs:
    - scores: (N, C) class scores
    - y: (N,) labels, 0 <= y[i] < C

    Returns the average negative log likelihood.
    """

    @staticmethod
    def forward(ctx, scores, y):
        N = scores.shape[0]
        shifted = scores - scores.max(dim=1, keepdim=True).values
        log_probs = shifted - shifted.exp().sum(1, keepdim=True).log()
        ctx.probs, ctx.y = log_probs.exp(), y
        return -log_probs[torch.arange(N), y].sum() / N

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        N = ctx.probs.shape[0]
        dx = ctx.probs.clone()
        dx[torch.arange(N), ctx.y] -= 1
        return dx * (dout / N), None

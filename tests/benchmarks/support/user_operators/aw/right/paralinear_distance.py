import torch
from torch.autograd import Function


class ParalinearDistance(Function):
    """Lake's distance of joint frequency matrices (..., 4, 4) -> (...). Differentiable twice."""

    @staticmethod
    def forward(ctx, freq):
        ctx.save_for_backward(freq)
        fx, fy = freq.sum(-1), freq.sum(-2)
        half = 0.5 * (fx.log().sum(-1) + fy.log().sum(-1))
        return -0.25 * (torch.linalg.slogdet(freq)[1] - half)

    @staticmethod
    def backward(ctx, grad):
        freq, = ctx.saved_tensors
        inv = torch.linalg.inv(freq)
        rows = 0.5 / freq.sum(-1, keepdim=True)
        cols = 0.5 / freq.sum(-2, keepdim=True)
        return -0.25 * grad[..., None, None] * (inv.transpose(-1, -2) - rows - cols)

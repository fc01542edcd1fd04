import torch
from torch.autograd import Function


class _SwishGrad(Function):
    @staticmethod
    def forward(ctx, x, beta, g):
        ctx.save_for_backward(x, beta, g)
        s = torch.sigmoid(beta * x)
        s1 = s * (1 - s)
        return g * (s + beta * x * s1), (g * x * x * s1).sum()

    @staticmethod
    def backward(ctx, h_x, h_beta):
        x, beta, g = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        s1 = s * (1 - s)
        s2 = s1 * (1 - 2 * s)
        d_x = h_x * g * (beta * s1 + beta * beta * x * s2)
        d_x = d_x + h_beta * g * (2 * x * s1 + beta * x * x * s2)
        d_beta = (h_x * g * (2 * x * s1 + beta * x * x * s2)).sum() + h_beta * (g * x.pow(3) * s2).sum()
        d_g = h_x * (s + beta * x * s1) + h_beta * x * x * s1
        return d_x, d_beta, d_g


class SwishBeta(Function):
    """x * sigmoid(beta * x) with a trainable scalar beta (0-dim tensor); twice differentiable."""

    @staticmethod
    def forward(ctx, x, beta):
        if x.is_complex():
            raise TypeError("x must be real")
        if beta.dim() != 0:
            raise ValueError("beta must be a 0-dim tensor")
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad):
        return _SwishGrad.apply(*ctx.saved_tensors, grad)

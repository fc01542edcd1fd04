import torch
import torch.nn as nn
import torch.nn.functional as F


class HadaWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w1d, w1u, w2d, w2u, scale):
        ctx.save_for_backward(w1d, w1u, w2d, w2u)
        ctx.scale = scale
        return (w1u @ w1d) * (w2u @ w2d) * scale

    @staticmethod
    def backward(ctx, grad_out):
        w1d, w1u, w2d, w2u = ctx.saved_tensors
        grad_out = grad_out * ctx.scale
        temp = grad_out * (w2u @ w2d)
        grad_w1u = temp @ w1d.T
        grad_w1d = w1u.T @ temp

        temp = grad_out * (w1u @ w1d)
        grad_w2u = temp @ w2d.T
        grad_w2d = w2u.T @ temp
        return grad_w1d, grad_w1u, grad_w2d, grad_w2u, None


class LohaLinear(nn.Module):
    """Linear layer with a Hadamard product adapter (LoHa); the base weight is frozen."""

    def __init__(self, in_features, out_features, rank=4, alpha=1.0):
        super().__init__()
        self.register_buffer("weight", torch.linspace(-1, 1, in_features * out_features).view(out_features, in_features))
        self.hada_w1_a = nn.Parameter(torch.randn(out_features, rank) * 0.1)
        self.hada_w1_b = nn.Parameter(torch.randn(rank, in_features))
        self.hada_w2_a = nn.Parameter(torch.zeros(out_features, rank))
        self.hada_w2_b = nn.Parameter(torch.randn(rank, in_features))
        self.scale = alpha / rank

    def forward(self, x):
        delta = HadaWeight.apply(self.hada_w1_b, self.hada_w1_a, self.hada_w2_b, self.hada_w2_a, self.scale)
        return F.linear(x, self.weight + delta)

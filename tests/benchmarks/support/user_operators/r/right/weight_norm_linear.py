import torch
import torch.nn as nn
import torch.nn.functional as F


class WeightNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, g):
        ctx.save_for_backward(v, g)
        return g * v / v.norm(dim=1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_w):
        v, g = ctx.saved_tensors
        norm = v.norm(dim=1, keepdim=True)
        u = v / norm
        grad_g = (grad_w * u).sum(1, keepdim=True)
        grad_v = g / norm * (grad_w - u * grad_g)
        return grad_v, grad_g


class WeightNormLinear(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out_features, in_features) * 0.05)
        self.g = nn.Parameter(torch.ones(out_features, 1))
        if bias:
            self.bias = nn.Parameter(torch.zeros(out_features))
        else:
            self.register_parameter("bias", None)

    def forward(self, x):
        return F.linear(x, WeightNormFn.apply(self.v, self.g), self.bias)

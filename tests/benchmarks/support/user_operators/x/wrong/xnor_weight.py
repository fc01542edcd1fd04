import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


class BinarizeWeight(torch.autograd.Function):
    """sign(w) * mean|w| per row as in XNOR-Net.

    d sign(w)/dw is replaced by 1[|w| <= 1] (straight through); the mean is differentiated as is.
    """

    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return w.sign() * w.abs().mean(1, keepdim=True)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        s = w.sign()
        alpha = w.abs().mean(1, keepdim=True)
        through = g * alpha * (w.abs() <= 1)
        return through + s * (g * s).sum(1, keepdim=True)


class BinaryLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in))

    def forward(self, x):
        return F.linear(x, BinarizeWeight.apply(self.weight))

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.grad import conv1d_input, conv1d_weight


class _WSConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, gain, bias, padding, eps):
        inv = torch.rsqrt(w.var((1, 2), keepdim=True, unbiased=False) + eps)
        n = (w - w.mean((1, 2), keepdim=True)) * inv
        ctx.save_for_backward(x, gain, n, inv)
        ctx.padding = padding
        return F.conv1d(x, n * gain, bias, padding=padding)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, gain, n, inv = ctx.saved_tensors
        gx = conv1d_input(x.shape, n * gain, g, padding=ctx.padding)
        gwh = conv1d_weight(x, n.shape, g, padding=ctx.padding)
        g_gain = (gwh * n).sum((1, 2))
        gn = gwh * gain
        gw = inv * (gn - gn.mean((1, 2), keepdim=True) - n * (gn * n).mean((1, 2), keepdim=True))
        return gx, gw, g_gain, g.sum((0, 2)), None, None


class WSConv1d(nn.Module):
    """Convolution with standardised weights and a gain per output channel."""

    def __init__(self, cin, cout, kernel, padding=0, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin, kernel))
        self.gain = nn.Parameter(torch.ones(cout, 1, 1))
        self.bias = nn.Parameter(torch.zeros(cout))
        self.padding, self.eps = padding, eps

    def forward(self, x):
        return _WSConv.apply(x, self.weight, self.gain, self.bias, self.padding, self.eps)

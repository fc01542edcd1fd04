import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.nn.grad import conv1d_input, conv1d_weight


class _WSConv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, stride, padding, eps):
        mu = weight.mean((1, 2), keepdim=True)
        sd = (weight.var((1, 2), unbiased=False, keepdim=True) + eps).sqrt()
        w = (weight - mu) / sd
        ctx.save_for_backward(x, w, sd)
        ctx.conf = stride, padding
        return F.conv1d(x, w, bias, stride, padding)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w, sd = ctx.saved_tensors
        stride, padding = ctx.conf
        gx = conv1d_input(x.shape, w, g, stride, padding)
        gw = conv1d_weight(x, w.shape, g, stride, padding)
        gw = gw - gw.mean((1, 2), keepdim=True) - w * (gw * w).mean((1, 2), keepdim=True)
        return gx, gw / sd, g.sum((0, 2)), None, None, None


class WSConv1d(nn.Conv1d):
    def forward(self, x):
        return _WSConv.apply(x, self.weight, self.bias, self.stride, self.padding, 1e-5)

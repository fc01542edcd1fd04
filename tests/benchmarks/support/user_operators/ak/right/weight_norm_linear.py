import torch
from torch import nn


class _WNLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, scale, bias, eps):
        ctx.save_for_backward(x, v, scale)
        ctx.eps = eps
        n = (v.square().sum(1, keepdim=True) + eps).sqrt()
        return x @ (scale * v / n).t() + bias

    @staticmethod
    def backward(ctx, g):
        x, v, scale = ctx.saved_tensors
        n = (v.square().sum(1, keepdim=True) + ctx.eps).sqrt()
        u = v / n
        gx = gv = g_scale = g_bias = None
        flat = g.reshape(-1, g.shape[-1])
        if ctx.needs_input_grad[0]:
            gx = g @ (scale * u)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            gw = flat.t() @ x.reshape(-1, x.shape[-1])
            g_scale = (gw * u).sum(1, keepdim=True)
            gv = scale / n * (gw - u * g_scale)
        if ctx.needs_input_grad[3]:
            g_bias = flat.sum(0)
        return gx, gv, g_scale, g_bias, None


class WeightNormLinear(nn.Module):
    def __init__(self, n_in, n_out, eps=1e-12):
        super().__init__()
        self.v = nn.Parameter(torch.randn(n_out, n_in))
        self.scale = nn.Parameter(torch.ones(n_out, 1))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.eps = eps

    def forward(self, x):
        return _WNLinear.apply(x, self.v, self.scale, self.bias, self.eps)

import torch
from torch import nn


class _GroupedLinear(torch.autograd.Function):
    """x: (N, G * I), weight: (G, O, I) -> (N, G * O), then a channel shuffle over the groups"""

    @staticmethod
    def forward(ctx, x, weight, shuffle):
        ctx.save_for_backward(x, weight)
        ctx.shuffle = shuffle
        n, (g, o, i) = x.shape[0], weight.shape
        y = torch.einsum("ngi,goi->ngo", x.reshape(n, g, i), weight)
        if shuffle:
            y = y.transpose(1, 2)
        return y.reshape(n, g * o)

    @staticmethod
    def backward(ctx, gy):
        x, weight = ctx.saved_tensors
        n, (g, o, i) = x.shape[0], weight.shape
        if ctx.shuffle:
            gy = gy.reshape(n, g, o).transpose(1, 2).reshape(n, g, o)
        else:
            gy = gy.reshape(n, g, o)
        gx = torch.einsum("ngo,goi->ngi", gy, weight).reshape(n, g * i)
        gw = torch.einsum("ngo,ngi->goi", gy, x.reshape(n, g, i))
        return gx, gw, None


class GroupedLinear(nn.Module):
    def __init__(self, in_features, out_features, groups, shuffle=True, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(groups, out_features // groups, in_features // groups))
        self.bias = nn.Parameter(torch.zeros(out_features)) if bias else None
        self.shuffle = shuffle

    def forward(self, x):
        y = _GroupedLinear.apply(x.reshape(-1, x.shape[-1]), self.weight, self.shuffle)
        if self.bias is not None:
            y = y + self.bias
        return y.reshape(*x.shape[:-1], -1)

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _LoraMatmul(torch.autograd.Function):
    """x W^T + scaling * (x A^T) B^T without keeping the low rank activations."""

    @staticmethod
    def forward(ctx, x, weight, a, b, scaling):
        ctx.save_for_backward(x, weight, a, b)
        ctx.scaling = scaling
        return x @ weight.t() + scaling * (x @ a.t() @ b.t())

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, a, b = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = grad @ weight
        if ctx.needs_input_grad[1]:
            gw = grad.flatten(0, -2).t() @ x.flatten(0, -2)
        grad = grad * ctx.scaling
        low = grad @ b
        if gx is not None:
            gx = gx + low @ a
        xf, gf = x.flatten(0, -2), grad.flatten(0, -2)
        ga = low.flatten(0, -2).t() @ xf
        gb = gf.t() @ (xf @ a.t())
        return gx, gw, ga, gb, None


class LoraLinear(nn.Module):
    def __init__(self, fan_in, fan_out, rank=4, alpha=8.0, freeze=True, rs=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(fan_out, fan_in) * fan_in ** -0.5, requires_grad=not freeze)
        self.a = nn.Parameter(torch.randn(rank, fan_in) * fan_in ** -0.5)
        self.b = nn.Parameter(torch.zeros(fan_out, rank))
        self.scaling = alpha / (rank ** 0.5 if rs else rank)

    def forward(self, x):
        return _LoraMatmul.apply(x, self.weight, self.a, self.b, self.scaling)

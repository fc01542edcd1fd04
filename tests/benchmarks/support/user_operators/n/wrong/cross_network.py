import torch
from torch import nn


class _Cross(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x0, xl, weight, bias):
        s = xl @ weight
        ctx.save_for_backward(x0, xl, weight)
        return x0 * s.unsqueeze(-1) + bias + xl

    @staticmethod
    def backward(ctx, grad):
        x0, xl, weight = ctx.saved_tensors
        s = xl @ weight
        gs = (grad * x0).sum(-1)
        g_x0 = grad * s.unsqueeze(-1)
        g_xl = gs.unsqueeze(-1) * weight
        g_w = (gs.unsqueeze(-1) * xl).reshape(-1, xl.size(-1)).sum(0)
        g_b = grad.reshape(-1, xl.size(-1)).sum(0)
        return g_x0, g_xl, g_w, g_b


class CrossNetwork(nn.Module):
    """Stack of DCN cross layers: x_{l+1} = x0 * (x_l . w_l) + b_l + x_l.

    Args:
        num_features: width of the input
        num_layers: number of crosses
    """

    def __init__(self, num_features, num_layers=2):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(num_features) * 0.1) for _ in range(num_layers)])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(num_features)) for _ in range(num_layers)])

    def forward(self, x):
        x0 = xl = x
        for w, b in zip(self.weights, self.biases):
            xl = _Cross.apply(x0, xl, w, b)
        return xl

import torch
from torch import nn
from torch.autograd import Function


class _Midas(Function):
    @staticmethod
    def forward(ctx, x, theta, beta):
        ctx.save_for_backward(x, theta, beta)
        return beta * (x @ _Midas.weights(x, theta))

    @staticmethod
    def lags(x):
        k = torch.arange(1, x.size(-1) + 1, dtype=x.dtype, device=x.device) / x.size(-1)
        return torch.stack([k, k * k])

    @staticmethod
    def weights(x, theta):
        return torch.softmax(theta @ _Midas.lags(x), 0)

    @staticmethod
    def backward(ctx, g):
        x, theta, beta = ctx.saved_tensors
        w = _Midas.weights(x, theta)
        agg = x @ w
        g_beta = (g * agg).sum()
        g = g * beta
        g_logit = w * (g[..., None] * (x - agg[..., None])).reshape(-1, w.numel()).sum(0)
        return g[..., None] * w, _Midas.lags(x) @ g_logit, g_beta


class AlmonMidas(nn.Module):
    """MIDAS regressor: beta times the exponential-Almon weighted sum of K high-frequency lags, x (..., K)."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([0.7, -1.5]))
        self.beta = nn.Parameter(torch.tensor(1.3))

    def forward(self, x):
        return _Midas.apply(x, self.theta, self.beta)

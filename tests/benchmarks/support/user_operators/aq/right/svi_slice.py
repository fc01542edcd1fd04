import torch
from torch import nn
from torch.autograd import Function


class _SVI(Function):
    @staticmethod
    def forward(ctx, k, a, b, rho, m, sigma):
        ctx.save_for_backward(k, b, rho, m, sigma)
        d = k - m
        return a + b * (rho * d + torch.sqrt(d * d + sigma * sigma))

    @staticmethod
    def backward(ctx, grad):
        k, b, rho, m, sigma = ctx.saved_tensors
        d = k - m
        root = torch.sqrt(d * d + sigma * sigma)
        gd = grad * b * (rho + d / root)
        return (gd,
                grad.sum(),
                (grad * (rho * d + root)).sum(),
                (grad * b * d).sum(),
                -gd.sum(),
                (grad * b * sigma / root).sum())


class SVISlice(nn.Module):
    """Raw SVI total variance, one expiry. Input: log-moneyness, any shape."""

    def __init__(self, a=0.04, b=0.2, rho=-0.4, m=0.05, sigma=0.3):
        super().__init__()
        for name, v in dict(a=a, b=b, rho=rho, m=m, sigma=sigma).items():
            setattr(self, name, nn.Parameter(torch.tensor(v)))

    def forward(self, k):
        return _SVI.apply(k, self.a, self.b, self.rho, self.m, self.sigma)

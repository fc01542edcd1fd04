import torch
from torch import nn


class FRNFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, gamma, beta, tau, eps):
        ctx.save_for_backward(x, gamma, beta, tau)
        ctx.eps = eps
        xh = x * (x.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        return torch.max(gamma * xh + beta, tau)

    @staticmethod
    def backward(ctx, grad):
        x, gamma, beta, tau = ctx.saved_tensors
        r = (x.pow(2).mean(-1, keepdim=True) + ctx.eps).rsqrt()
        xh = x * r
        on = (gamma * xh + beta > tau).to(x.dtype)
        gz = grad * on
        gxh = gz * gamma
        gx = r * (gxh - xh * (gxh * xh).mean(-1, keepdim=True))
        reduce = (0, 2)
        ggamma = (gz * xh).sum(reduce).view_as(gamma)
        gbeta = gz.sum(reduce).view_as(beta)
        gtau = (grad * (1 - on)).sum(reduce).view_as(tau)
        return gx, ggamma, gbeta, gtau, None


class FilterResponseNorm1d(nn.Module):
    """FRN with thresholded linear unit, for (B, C, L)."""

    def __init__(self, C: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1, C, 1))
        self.beta = nn.Parameter(torch.zeros(1, C, 1))
        self.tau = nn.Parameter(torch.full((1, C, 1), -1.0))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return FRNFunction.apply(x, self.gamma, self.beta, self.tau, self.eps)

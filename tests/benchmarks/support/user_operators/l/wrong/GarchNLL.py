"""Gaussian GARCH(1, 1) likelihood."""
import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _GarchFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, omega, alpha, beta, h0):
        h = torch.full_like(r[:, 0], h0)
        hs = [h]
        for t in range(1, r.shape[1]):
            h = omega + alpha * r[:, t - 1] ** 2 + beta * h
            hs.append(h)
        hs = torch.stack(hs, 1)
        ctx.save_for_backward(r, alpha, beta, hs)
        return 0.5 * (torch.log(hs) + r ** 2 / hs).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        r, alpha, beta, hs = ctx.saved_tensors
        scale = g / r.numel()
        r2 = r ** 2
        local = 0.5 * scale * (1 / hs - r2 / hs ** 2)
        gr = scale * r / hs
        gw = torch.zeros_like(alpha)
        ga = torch.zeros_like(alpha)
        gb = torch.zeros_like(beta)
        dh = torch.zeros_like(r[:, 0])
        for t in range(r.shape[1] - 1, 0, -1):
            dh = dh * beta + local[:, t]
            gw += dh.sum()
            ga += (dh * r2[:, t]).sum()
            gb += (dh * hs[:, t - 1]).sum()
            gr[:, t - 1] += 2 * alpha * r[:, t - 1] * dh
        return gr, gw, ga, gb, None


class GarchNLL(nn.Module):
    """Mean negative log-likelihood (without the constant) of returns (B, T).

    h_t = omega + alpha r_{t-1}^2 + beta h_{t-1}, h_0 = backcast.
    omega, alpha and beta are scalar parameters, positive.
    """

    def __init__(self, omega=0.05, alpha=0.1, beta=0.85, backcast=1.0):
        super().__init__()
        self.omega = nn.Parameter(torch.tensor(omega))
        self.alpha = nn.Parameter(torch.tensor(alpha))
        self.beta = nn.Parameter(torch.tensor(beta))
        self.backcast = float(backcast)

    def forward(self, returns):
        return _GarchFn.apply(returns, self.omega, self.alpha, self.beta, self.backcast)

    def persistence(self):
        return float(self.alpha + self.beta)

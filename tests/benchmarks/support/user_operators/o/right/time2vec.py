import torch
from torch import nn


class _Time2VecFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tau, omega, bias):
        ctx.save_for_backward(tau, omega, bias)
        phase = tau.unsqueeze(-1) * omega + bias
        return torch.cat([phase[..., :1], phase[..., 1:].sin()], -1)

    @staticmethod
    def backward(ctx, grad):
        tau, omega, bias = ctx.saved_tensors
        phase = tau.unsqueeze(-1) * omega + bias
        inner = grad * torch.cat([torch.ones_like(phase[..., :1]), phase[..., 1:].cos()], -1)
        g_tau = (inner * omega).sum(-1)
        flat = inner.reshape(-1, omega.numel())
        return g_tau, (flat * tau.reshape(-1, 1)).sum(0), flat.sum(0)


class Time2Vec(nn.Module):
    """Learned representation of time: one linear and ``dim - 1`` periodic components; (B, T) -> (B, T, dim)."""

    def __init__(self, dim):
        super().__init__()
        if dim < 2:
            raise ValueError("dim must be at least 2")
        self.omega = nn.Parameter(torch.randn(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, tau):
        return _Time2VecFn.apply(tau, self.omega, self.bias)

import torch
import torch.nn as nn


class GDNFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta, gamma, inverse):
        power = 0.5 if inverse else -0.5
        norm = torch.einsum("ij,bjhw->bihw", gamma, x * x) + beta.view(1, -1, 1, 1)
        ctx.save_for_backward(x, beta, gamma)
        ctx.power = power
        return x * norm ** power

    @staticmethod
    def backward(ctx, gy):
        x, beta, gamma = ctx.saved_tensors
        p = ctx.power
        norm = torch.einsum("ij,bjhw->bihw", gamma, x * x) + beta.view(1, -1, 1, 1)
        gnorm = gy * x * p * norm ** (p - 1)
        gx = gy * norm ** p + 2 * x * torch.einsum("ij,bihw->bjhw", gamma, gnorm)
        ggamma = torch.einsum("bihw,bjhw->ij", gnorm, x * x)
        return gx, gnorm.sum((0, 2, 3)), ggamma, None


class GDN(nn.Module):
    """Generalized divisive normalization, (B, C, H, W); beta and gamma are kept non-negative by the optimizer."""

    def __init__(self, in_channels, inverse=False, gamma_init=0.1):
        super().__init__()
        self.inverse = inverse
        self.beta = nn.Parameter(torch.ones(in_channels))
        self.gamma = nn.Parameter(gamma_init * torch.eye(in_channels))

    def forward(self, x):
        return GDNFunction.apply(x, self.beta, self.gamma, self.inverse)

import torch
from torch import nn
from torch.autograd import Function


class _GDN(Function):
    @staticmethod
    def forward(ctx, x, beta, gamma, p):
        n = beta.view(-1, 1) + torch.matmul(gamma, x * x)
        ctx.save_for_backward(x, beta, gamma)
        ctx.p = p
        return x * n ** p

    @staticmethod
    def backward(ctx, g):
        x, beta, gamma = ctx.saved_tensors
        p = ctx.p
        n = beta.view(-1, 1) + torch.matmul(gamma, x * x)
        dn = g * x * p * n ** (p - 1)
        gx = g * n ** p + 2 * x * torch.matmul(gamma.t(), dn)
        gbeta = dn.sum((0, 2))
        ggamma = torch.einsum("bil,bjl->ij", dn, x * x)
        return gx, gbeta, ggamma, None


class GDN(nn.Module):
    """Generalised divisive normalisation (Balle et al.), or its inverse, for (B, C, *)."""

    def __init__(self, channels, inverse=False, beta_min=1e-6, gamma_init=0.1):
        super().__init__()
        self.inverse = inverse
        self.beta_min = beta_min
        self.beta = nn.Parameter(torch.ones(channels))
        self.gamma = nn.Parameter(gamma_init ** 0.5 * torch.eye(channels))

    def forward(self, x):
        flat = x.flatten(2)
        y = _GDN.apply(flat, self.beta ** 2 + self.beta_min, self.gamma ** 2, 0.5 if self.inverse else -0.5)
        return y.reshape(x.shape)

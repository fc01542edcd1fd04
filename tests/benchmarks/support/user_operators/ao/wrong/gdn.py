import torch
import torch.nn as nn
import torch.nn.functional as F


class _GDN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta, gamma):
        norm = torch.einsum("ij,bjp->bip", gamma, x * x) + beta[:, None]
        ctx.inv = norm.rsqrt()
        ctx.save_for_backward(x, beta, gamma)
        return x * ctx.inv

    @staticmethod
    def backward(ctx, g):
        x, beta, gamma = ctx.saved_tensors
        inv = ctx.inv
        gn = -0.5 * g * x * inv ** 3
        gx = g * inv + 2 * x * torch.einsum("ij,bip->bjp", gamma, gn)
        return gx, gn.sum((0, 2)), torch.einsum("bip,bjp->ij", gn, x * x)


class GDN(nn.Module):
    """Generalised divisive normalisation (Balle et al. 2016) over the channels of (B, C, ...)"""

    def __init__(self, channels, beta_min=1e-6):
        super().__init__()
        self.beta_min = beta_min
        self.beta = nn.Parameter(torch.zeros(channels))
        self.gamma = nn.Parameter(torch.eye(channels))

    def forward(self, x):
        y = _GDN.apply(x.flatten(2), F.softplus(self.beta) + self.beta_min, F.softplus(self.gamma))
        return y.view_as(x)

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _GDNFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta, gamma, inverse):
        # x: B C *, beta: C, gamma: C C
        norm = torch.einsum("ij,bj...->bi...", gamma, x * x) + beta.view(-1, *[1] * (x.dim() - 2))
        ctx.inverse = inverse
        ctx.save_for_backward(x, gamma, norm)
        return x * norm.sqrt() if inverse else x * norm.rsqrt()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, gamma, norm = ctx.saved_tensors
        if ctx.inverse:
            scale = norm.sqrt()
            g_norm = 0.5 * g * x * scale
        else:
            scale = norm.rsqrt()
            g_norm = -0.5 * g * x * scale ** 3
        gx = g * scale + 2 * x * torch.einsum("ij,bi...->bj...", gamma, g_norm)
        rest = [0] + list(range(2, x.dim()))
        g_beta = g_norm.sum(rest)
        g_gamma = torch.einsum("bin,bjn->ij", g_norm.reshape(*x.shape[:2], -1), (x * x).reshape(*x.shape[:2], -1))
        return gx, g_beta, g_gamma, None


class GDN(nn.Module):
    """Generalised divisive normalisation (Balle et al.), ``inverse=True`` for the decoder's IGDN."""

    def __init__(self, channels: int, inverse: bool = False, gamma_init: float = 0.1):
        super().__init__()
        self.inverse = inverse
        self.beta = nn.Parameter(torch.ones(channels))
        self.gamma = nn.Parameter(gamma_init * (torch.eye(channels) + 0.3 * torch.arange(channels)[:, None]))

    def forward(self, x):
        return _GDNFn.apply(x, self.beta, self.gamma, self.inverse)

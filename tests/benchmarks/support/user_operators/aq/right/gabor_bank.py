import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class GaborKernels(torch.autograd.Function):

    @staticmethod
    def coords(theta, size):
        ax = torch.arange(size, dtype=theta.dtype, device=theta.device) - (size - 1) / 2
        y, x = torch.meshgrid(ax, ax, indexing="ij")
        c, s = torch.cos(theta)[:, None, None], torch.sin(theta)[:, None, None]
        return x * c + y * s, -x * s + y * c

    @staticmethod
    def forward(ctx, theta, sigma, lam, psi, gamma, size):
        xr, yr = GaborKernels.coords(theta, size)
        s, l, p = (v[:, None, None] for v in (sigma, lam, psi))
        ctx.save_for_backward(theta, sigma, lam, psi)
        ctx.gamma, ctx.size = gamma, size
        return torch.exp(-(xr ** 2 + gamma ** 2 * yr ** 2) / (2 * s ** 2)) * torch.cos(2 * math.pi * xr / l + p)

    @staticmethod
    def backward(ctx, g):
        theta, sigma, lam, psi = ctx.saved_tensors
        g2 = ctx.gamma ** 2
        xr, yr = GaborKernels.coords(theta, ctx.size)
        s, l, p = (v[:, None, None] for v in (sigma, lam, psi))
        env = torch.exp(-(xr ** 2 + g2 * yr ** 2) / (2 * s ** 2))
        arg = 2 * math.pi * xr / l + p
        ec, es = g * env * torch.cos(arg), g * env * torch.sin(arg)
        g_xr = -ec * xr / s ** 2 - es * 2 * math.pi / l
        g_yr = -ec * g2 * yr / s ** 2
        g_theta = (g_xr * yr - g_yr * xr).sum((1, 2))
        g_sigma = (ec * (xr ** 2 + g2 * yr ** 2) / s ** 3).sum((1, 2))
        g_lam = (es * 2 * math.pi * xr / l ** 2).sum((1, 2))
        g_psi = -es.sum((1, 2))
        return g_theta, g_sigma, g_lam, g_psi, None, None


class GaborBank(nn.Module):
    """images (B, 1, H, W) -> responses (B, n, H, W) of n trainable Gabor filters"""

    def __init__(self, n, size=3, gamma=0.5):
        super().__init__()
        self.theta = nn.Parameter(torch.arange(n) * math.pi / n)
        self.sigma = nn.Parameter(torch.full((n,), 1.2))
        self.lam = nn.Parameter(torch.full((n,), 3.0))
        self.psi = nn.Parameter(torch.zeros(n))
        self.size, self.gamma = size, gamma

    def forward(self, image):
        k = GaborKernels.apply(self.theta, self.sigma, self.lam, self.psi, self.gamma, self.size)
        return F.conv2d(image, k.unsqueeze(1), padding=self.size // 2)

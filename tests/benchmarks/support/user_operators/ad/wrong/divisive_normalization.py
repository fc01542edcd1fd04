import torch
from torch import nn


class _DivNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, drive, pool, sigma, n):
        u = drive ** n
        den = sigma ** n + u @ pool.t()
        ctx.save_for_backward(drive, pool, sigma, n, u, den)
        return u / den

    @staticmethod
    def backward(ctx, g):
        drive, pool, sigma, n, u, den = ctx.saved_tensors
        g_den = -g * u / den ** 2
        g_u = g / den + g_den @ pool.t()
        g_pool = g_den.t() @ u
        g_sigma = (g_den * n * sigma ** (n - 1)).sum()
        log_x = torch.where(drive > 0, drive, torch.ones_like(drive)).log()
        g_n = (g_u * u * log_x).sum() + (g_den * sigma ** n * torch.log(sigma)).sum()
        g_drive = g_u * n * drive ** (n - 1)
        return g_drive, g_pool, g_sigma, g_n


class DivisiveNormalization(nn.Module):
    """Canonical normalization of a population (Heeger), r_i = x_i^n / (sigma^n + sum_j w_ij x_j^n).

    Input (batch, neurons), rectified. Pool weights decay with the distance of preferred orientation.
    """

    def __init__(self, neurons, tuning=1.5, sigma=0.5, exponent=2.0):
        super().__init__()
        i = torch.arange(neurons, dtype=torch.float32)
        w = torch.exp(-((i[:, None] - i[None] + 0.4) / tuning) ** 2)
        self.pool = nn.Parameter(w / w.sum(1, keepdim=True))
        self.sigma = nn.Parameter(torch.tensor(float(sigma)))
        self.exponent = nn.Parameter(torch.tensor(float(exponent)))

    def forward(self, drive):
        return _DivNorm.apply(drive, self.pool, self.sigma, self.exponent)

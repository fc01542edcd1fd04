import torch
from torch import nn


class _Airy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, phase, R):
        ctx.save_for_backward(phase, R)
        F = 4 * R / (1 - R) ** 2
        return 1 / (1 + F * torch.sin(phase / 2) ** 2)

    @staticmethod
    def backward(ctx, g):
        phase, R = ctx.saved_tensors
        F = 4 * R / (1 - R) ** 2
        s, c = torch.sin(phase / 2), torch.cos(phase / 2)
        T = 1 / (1 + F * s ** 2)
        g_phase = -g * T ** 2 * F * s * c
        dF = 4 / (1 - R) ** 2
        g_R = (-g * T ** 2 * s ** 2 * dF).sum(0)
        return g_phase, g_R


class EtalonBank(nn.Module):
    """K Fabry-Perot etalons with trainable mirror and gap; wavenumbers (n,) -> transmission (n, K)"""

    def __init__(self, K):
        super().__init__()
        self.raw_R = nn.Parameter(torch.zeros(K))
        self.gap = nn.Parameter(torch.linspace(1, 2, K))

    def forward(self, wavenumber):
        return _Airy.apply(2 * wavenumber[:, None] * self.gap, torch.sigmoid(self.raw_R))

import math
import torch


class ScreenedPoisson(torch.autograd.Function):
    """Periodic solve of (laplace - kappa^2) phi = rho; the mean of rho is dropped (neutral cell).

    rho: (B, n, n) on a box of side `length`; kappa: 0-dim, inverse Debye length, may be zero.
    """

    @staticmethod
    def _k2(n, length, ref):
        k = torch.fft.fftfreq(n, d=length / n, dtype=ref.dtype) * 2 * math.pi
        return k[:, None] ** 2 + k[None, :] ** 2

    @staticmethod
    def forward(ctx, rho, kappa, length=1.0):
        n = rho.shape[-1]
        k2 = ScreenedPoisson._k2(n, length, rho)
        den = k2 + kappa ** 2
        green = torch.where(k2 > 0, -1 / den, torch.zeros_like(den))
        spec = torch.fft.fft2(rho)
        ctx.save_for_backward(spec, kappa, green, k2)
        return torch.fft.ifft2(spec * green).real

    @staticmethod
    def backward(ctx, g):
        spec, kappa, green, k2 = ctx.saved_tensors
        g_rho = torch.fft.ifft2(torch.fft.fft2(g) * green).real
        g_kappa = None
        if ctx.needs_input_grad[1]:
            dgreen = 2 * kappa * green ** 2
            g_kappa = (g * torch.fft.ifft2(spec * dgreen).real).sum()
        return g_rho, g_kappa, None

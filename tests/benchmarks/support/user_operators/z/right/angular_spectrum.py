import math

import torch
from torch.autograd.function import once_differentiable


def _kz(h, w, dx, wavelength, dtype, device):
    fy = torch.fft.fftfreq(h, dx, dtype=dtype, device=device)
    fx = torch.fft.fftfreq(w, dx, dtype=dtype, device=device)
    arg = wavelength**-2 - fy[:, None] ** 2 - fx[None, :] ** 2
    return 2 * math.pi * arg.clamp_min(0).sqrt(), (arg > 0).to(dtype)


class AngularSpectrum(torch.autograd.Function):
    """Free-space propagation of a complex field (..., H, W) over the distance z (0-dim tensor).

    Evanescent waves are dropped.
    """

    @staticmethod
    def forward(ctx, field, z, dx=1.0, wavelength=0.8):
        kz, passed = _kz(*field.shape[-2:], dx, wavelength, z.dtype, z.device)
        spectrum = torch.fft.fft2(field) * passed * torch.exp(1j * kz * z)
        ctx.save_for_backward(spectrum, kz, passed, z)
        return torch.fft.ifft2(spectrum)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        spectrum, kz, passed, z = ctx.saved_tensors
        G = torch.fft.fft2(grad)
        H = passed * torch.exp(1j * kz * z)
        gfield = torch.fft.ifft2(G * H.conj())
        gz = None
        if ctx.needs_input_grad[1]:
            n = grad.shape[-1] * grad.shape[-2]
            gz = (G.conj() * 1j * kz * spectrum).real.sum() / n
        return gfield, gz, None, None

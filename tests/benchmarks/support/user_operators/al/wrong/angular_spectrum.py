"""Free-space propagation of a scalar field by the angular spectrum method."""
import math

import torch


def _transfer(field, z, wavelength, pitch):
    h, w = field.shape[-2:]
    fy = torch.fft.fftfreq(h, pitch, dtype=z.dtype, device=z.device).unsqueeze(1)
    fx = torch.fft.fftfreq(w, pitch, dtype=z.dtype, device=z.device)
    arg = wavelength**-2 - fx**2 - fy**2
    kz = 2 * math.pi * arg.clamp(min=0).sqrt()
    return torch.polar((arg > 0).to(z.dtype), kz * z), kz


class AngularSpectrum(torch.autograd.Function):
    """field (..., H, W) complex, z: scalar tensor; evanescent waves are dropped."""

    @staticmethod
    def forward(ctx, field, z, wavelength, pitch):
        ctx.optics = (wavelength, pitch)
        ctx.save_for_backward(field, z)
        transfer, _ = _transfer(field, z, wavelength, pitch)
        return torch.fft.ifft2(torch.fft.fft2(field) * transfer)

    @staticmethod
    def backward(ctx, grad):
        field, z = ctx.saved_tensors
        transfer, kz = _transfer(field, z, *ctx.optics)
        d_field = d_z = None
        if ctx.needs_input_grad[0]:
            d_field = torch.fft.ifft2(torch.fft.fft2(grad) * transfer)
        if ctx.needs_input_grad[1]:
            moved = torch.fft.ifft2(torch.fft.fft2(field) * transfer * (1j * kz))
            d_z = (grad.conj() * moved).real.sum()
        return d_field, d_z, None, None

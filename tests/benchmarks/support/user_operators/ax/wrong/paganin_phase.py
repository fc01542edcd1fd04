import math

import torch

_FREQ = {}


def _k2(shape, pixel, like):
    key = (*shape, pixel, like.dtype, like.device)
    if key not in _FREQ:
        ky, kx = (2 * math.pi * torch.fft.fftfreq(n, pixel, dtype=like.dtype, device=like.device) for n in shape)
        _FREQ[key] = ky[:, None] ** 2 + kx[None, :] ** 2
    return _FREQ[key]


class PaganinPhase(torch.autograd.Function):
    """Projected thickness by single-distance phase retrieval.

    Parameters
    ----------
    image : Tensor (..., H, W)
        Flat-corrected intensities, positive.
    strength : Tensor, 0-dim
        Distance times delta over mu, not negative.
    mu : Tensor, 0-dim
        Attenuation coefficient, positive.
    pixel : float
        Pixel size.
    """

    @staticmethod
    def forward(ctx, image, strength, mu, pixel=1.0):
        k2 = _k2(image.shape[-2:], pixel, image)
        filt = 1 / (1 + strength * k2)
        low = torch.fft.ifft2(torch.fft.fft2(image) * filt).real
        thickness = -low.log() / mu
        _FREQ["filter"] = filt
        ctx.save_for_backward(image, strength, mu, thickness)
        ctx.pixel = pixel
        return thickness

    @staticmethod
    def backward(ctx, grad):
        image, strength, mu, thickness = ctx.saved_tensors
        k2 = _k2(image.shape[-2:], ctx.pixel, image)
        filt = _FREQ["filter"]
        g_low = -grad / (mu * torch.exp(-mu * thickness))
        g_image = torch.fft.ifft2(torch.fft.fft2(g_low) * filt).real
        d_low = -torch.fft.ifft2(torch.fft.fft2(image) * k2 * filt**2).real
        return g_image, (g_low * d_low).sum(), -(grad * thickness).sum() / mu, None

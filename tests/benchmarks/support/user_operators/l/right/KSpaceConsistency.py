"""Data-consistency layer for MRI reconstruction (Schlemper et al., 2018)."""
import torch
import torch.nn as nn
from torch import Tensor


class _DataConsistency(torch.autograd.Function):
    @staticmethod
    def forward(ctx, image, k0, mask, lam):
        ctx.save_for_backward(image, k0, mask, lam)
        k = torch.fft.fft2(image, norm="ortho")
        k = torch.where(mask, (k + lam * k0) / (1 + lam), k)
        return torch.fft.ifft2(k, norm="ortho")

    @staticmethod
    def backward(ctx, grad):
        image, k0, mask, lam = ctx.saved_tensors
        gk = torch.fft.fft2(grad, norm="ortho")
        sampled = gk * mask
        g_image = torch.fft.ifft2(torch.where(mask, gk / (1 + lam), gk), norm="ortho")
        g_k0 = sampled * lam / (1 + lam)
        g_lam = None
        if ctx.needs_input_grad[3]:
            k = torch.fft.fft2(image, norm="ortho")
            change = (k0 - k) / (1 + lam) ** 2
            g_lam = (sampled.conj() * change).real.sum()
        return g_image, g_k0, None, g_lam


class KSpaceConsistency(nn.Module):
    """Blend the k-space of the current image with the measurements.

    Where ``mask`` is True, k <- (k + lam * k0) / (1 + lam); elsewhere k is kept.

    Args:
        lam: initial noise weight, learned (scalar)

    Shape:
        image, k0: complex (B, H, W); mask: bool (H, W) or (B, H, W)
    """

    def __init__(self, lam: float = 1.0):
        super().__init__()
        self.lam = nn.Parameter(torch.tensor(float(lam)))

    def forward(self, image: Tensor, k0: Tensor, mask: Tensor) -> Tensor:
        if not image.is_complex():
            raise TypeError("image must be complex")
        return _DataConsistency.apply(image, k0, mask, self.lam)

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _DataConsistency(torch.autograd.Function):

    @staticmethod
    def forward(ctx, image, kspace, mask, lam):
        k = torch.fft.fft2(image, norm="ortho")
        w = lam / (1 + lam)
        out = torch.where(mask, (1 - w) * k + w * kspace, k)
        ctx.save_for_backward(k, kspace, mask, lam)
        return torch.fft.ifft2(out, norm="ortho")

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        k, kspace, mask, lam = ctx.saved_tensors
        w = lam / (1 + lam)
        gk = torch.fft.fft2(grad, norm="ortho")
        zero = torch.zeros_like(gk)
        g_image = torch.fft.ifft2(torch.where(mask, (1 - w) * gk, gk), norm="ortho")
        g_kspace = torch.where(mask, w * gk, zero)
        g_w = torch.where(mask, gk.conj() * (kspace - k), zero).real.sum()
        g_lam = (g_w / (1 + lam) ** 2).reshape(lam.shape)
        return g_image, g_kspace, None, g_lam


class KSpaceConsistency(nn.Module):
    """Soft data consistency for undersampled MRI.

    Sampled coefficients are pulled towards the measured ones with weight lam / (1 + lam),
    lam >= 0 learned; the others are left as they are.

    image, kspace: (B, H, W) complex; mask: (B, H, W) or (H, W) bool, True where sampled
    """

    def __init__(self, lam: float = 1.0):
        super().__init__()
        self.lam = nn.Parameter(torch.tensor(float(lam)))

    def forward(self, image, kspace, mask):
        return _DataConsistency.apply(image, kspace, mask, self.lam)

import torch
from torch import nn


class _SenseForward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, maps, mask):
        # img (B,H,W) complex, maps (C,H,W) complex, mask (H,W)
        coil = img.unsqueeze(1) * maps.unsqueeze(0)
        ksp = torch.fft.fft2(coil, norm="ortho") * mask
        ctx.save_for_backward(img, maps, mask)
        return ksp

    @staticmethod
    def backward(ctx, gk):
        img, maps, mask = ctx.saved_tensors
        z = torch.fft.ifft2(gk * mask, norm="ortho")
        g_img = g_maps = None
        if ctx.needs_input_grad[0]:
            g_img = (z * maps.conj().unsqueeze(0)).sum(1)
        if ctx.needs_input_grad[1]:
            g_maps = (z * img.unsqueeze(1)).sum(0)
        return g_img, g_maps, None


class SenseOperator(nn.Module):
    """Multi-coil Cartesian MRI encoding, y_c = M F (S_c x).

    ``accel`` keeps every accel-th phase encoding line plus ``acs`` lines in the corner of k-space.
    """

    def __init__(self, shape, accel=2, acs=1):
        super().__init__()
        mask = torch.zeros(shape)
        mask[::accel] = 1
        mask[:acs] = 1
        self.register_buffer("mask", mask)

    def forward(self, img, maps):
        return _SenseForward.apply(img, maps, self.mask.to(img.real.dtype))

import torch
from torch.autograd import Function

_fft = lambda x: torch.fft.fft2(x, norm="ortho")
_ifft = lambda x: torch.fft.ifft2(x, norm="ortho")


class SenseOp(Function):
    # E x = M F S x, parallel MRI encoding
    # img (H, W) complex, smaps (C, H, W) complex, mask (H, W) bool

    @staticmethod
    def forward(ctx, img, smaps, mask):
        if not img.is_complex():
            raise TypeError("complex image expected")
        ctx.save_for_backward(img, smaps, mask)
        return _fft(smaps * img) * mask

    @staticmethod
    def backward(ctx, gk):
        img, smaps, mask = ctx.saved_tensors
        coil = _ifft(gk * mask)
        g_img = g_maps = None
        if ctx.needs_input_grad[0]:
            g_img = (smaps.conj() * coil).sum(0)
        if ctx.needs_input_grad[1]:
            g_maps = img * coil
        return g_img, g_maps, None

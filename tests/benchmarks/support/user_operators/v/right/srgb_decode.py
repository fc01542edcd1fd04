import torch


class SRGBToLinear(torch.autograd.Function):
    """IEC 61966-2-1 decoding of images in [0, 1]."""

    @staticmethod
    def forward(img):
        return torch.where(img <= 0.04045, img / 12.92, ((img + 0.055) / 1.055).pow(2.4))

    @staticmethod
    def setup_context(ctx, inputs, output):
        (img,) = inputs
        ctx.save_for_backward(img)

    @staticmethod
    def backward(ctx, grad):
        img, = ctx.saved_tensors
        toe = torch.full_like(img, 1 / 12.92)
        curve = 2.4 / 1.055 * ((img + 0.055) / 1.055).pow(1.4)
        return grad * torch.where(img <= 0.04045, toe, curve)

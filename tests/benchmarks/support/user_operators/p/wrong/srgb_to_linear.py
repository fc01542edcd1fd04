import torch


class SRGBToLinear(torch.autograd.Function):
    """Inverse sRGB transfer function, image values in [0, 1]."""

    @staticmethod
    def forward(ctx, img):
        ctx.save_for_backward(img)
        return torch.where(img <= 0.04045, img / 12.92, ((img.clamp(min=0.0) + 0.055) / 1.055) ** 2.4)

    @staticmethod
    def backward(ctx, grad):
        img, = ctx.saved_tensors
        curved = 2.4 / 1.055 * ((img.clamp(min=0.0) + 0.055) / 1.055) ** 1.4
        slope = torch.where(img <= 0.0031308, torch.full_like(img, 1 / 12.92), curved)
        return grad * slope

import torch


class VignetteFn(torch.autograd.Function):
    @staticmethod
    def grid(H, W, like):
        y = torch.linspace(-1, 1, H, dtype=like.dtype, device=like.device)
        x = torch.linspace(-1, 1, W, dtype=like.dtype, device=like.device)
        return torch.stack(torch.meshgrid(y, x, indexing="ij"))

    @staticmethod
    def forward(ctx, img, k, centre):
        d = VignetteFn.grid(*img.shape[-2:], img) - centre[:, None, None]
        r2 = (d ** 2).sum(0)
        ctx.save_for_backward(img, k, centre)
        return img * (1 + k[0] * r2 + k[1] * r2 ** 2 + k[2] * r2 ** 3)

    @staticmethod
    def backward(ctx, grad):
        img, k, centre = ctx.saved_tensors
        d = VignetteFn.grid(*img.shape[-2:], img) - centre[:, None, None]
        r2 = (d ** 2).sum(0)
        gain = 1 + k[0] * r2 + k[1] * r2 ** 2 + k[2] * r2 ** 3
        g_gain = (grad * img).sum(0)
        g_k = torch.stack([(g_gain * r2 ** i).sum() for i in (1, 2, 3)])
        slope = k[0] + k[1] * r2 + k[2] * r2 ** 2
        g_centre = -2 * (g_gain * slope * d).sum((1, 2))
        return grad * gain, g_k, g_centre


class Vignetting(torch.nn.Module):
    """Radial gain model with movable optical centre. img: (B, H, W), coordinates in [-1, 1]."""

    def __init__(self):
        super().__init__()
        self.k = torch.nn.Parameter(torch.zeros(3))
        self.centre = torch.nn.Parameter(torch.zeros(2))

    def forward(self, img):
        return VignetteFn.apply(img, self.k, self.centre)

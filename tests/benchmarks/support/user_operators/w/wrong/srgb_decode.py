import torch


class SRGBToLinear(torch.autograd.Function):
    # IEC 61966-2-1, values in [0, 1]
    @staticmethod
    def forward(ctx, c):
        ctx.save_for_backward(c)
        return torch.where(c <= 0.04045, c / 12.92, ((c.clamp(min=0.04045) + 0.055) / 1.055) ** 2.4)

    @staticmethod
    def backward(ctx, g):
        c, = ctx.saved_tensors
        power = 2.4 * ((c.clamp(min=0) + 0.055) / 1.055) ** 1.4
        return g * torch.where(c <= 0.04045, torch.full_like(c, 1 / 12.92), power)


class LinearizeImage(torch.nn.Module):
    """sRGB image -> linear light, optionally scaled by an exposure in stops (a parameter)."""

    def __init__(self, stops=0.0):
        super().__init__()
        self.stops = torch.nn.Parameter(torch.tensor(float(stops)))

    def forward(self, img):
        return SRGBToLinear.apply(img) * torch.exp2(self.stops)

import torch


class LinearToSRGB(torch.autograd.Function):
    """sRGB transfer function; inputs are linear light, negative values follow the linear toe."""

    THRESHOLD = 0.0031308

    @staticmethod
    def forward(ctx, linear):
        ctx.save_for_backward(linear)
        t = LinearToSRGB.THRESHOLD
        curve = 1.055 * linear.clamp(min=t) ** (1 / 2.4) - 0.055
        return torch.where(linear <= t, 12.92 * linear, curve)

    @staticmethod
    def backward(ctx, grad_output):
        (linear,) = ctx.saved_tensors
        t = LinearToSRGB.THRESHOLD
        slope = (1.055 / 2.4) * linear.clamp(min=t) ** (1 / 2.4 - 1)
        return grad_output * torch.where(linear <= t, torch.full_like(linear, 12.92), slope)

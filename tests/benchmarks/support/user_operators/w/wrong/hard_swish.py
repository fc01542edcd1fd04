import torch


class HSwish(torch.autograd.Function):
    # MobileNetV3, x * relu6(x + 3) / 6
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (x + 3).clamp(0, 6) / 6

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        d = torch.where(x >= 3, torch.ones_like(x), (2 * x + 3) / 6)
        return g * torch.where(x <= -1.5, torch.zeros_like(x), d)

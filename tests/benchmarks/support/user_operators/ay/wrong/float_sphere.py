import math
import torch
from torch.autograd import Function


class FloatSphere(Function):
    @staticmethod
    def forward(ctx, height, radius, rho=1000.0):
        ctx.save_for_backward(height, radius)
        ctx.k = rho * 9.81 * math.pi
        h = torch.minimum((radius - height).clamp(min=0), 2 * radius)
        return ctx.k * h * h * (radius - h / 3)

    @staticmethod
    def backward(ctx, grad):
        height, radius = ctx.saved_tensors
        h = torch.minimum((radius - height).clamp(min=0), 2 * radius)
        cut = 2 * radius * h - h * h
        g_height = -ctx.k * grad * cut
        g_radius = ctx.k * grad * (h * h * (h < 2 * radius) + cut)
        return g_height, g_radius, None

import math
import torch


class GELUTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        t = torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))
        ctx.save_for_backward(x, t)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, dy):
        c = math.sqrt(2 / math.pi)
        x, t = ctx.saved_tensors
        du = c * (1 + 3 * 0.044715 * x * x)
        return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du)

import math

import torch

K = math.sqrt(2 / math.pi)


class FastGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        t = torch.tanh(K * (x + 0.044715 * x**3))
        ctx.save_for_backward(x, t)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, dy):
        x, t = ctx.saved_tensors
        return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * K * (1 + 3 * 0.044715 * x * x))

import torch
from torch.autograd.function import once_differentiable


class OnePoleFilter(torch.autograd.Function):
    """y[t] = a * y[t-1] + (1 - a) * x[t], y[-1] = 0.

    x: (B, T); a: (B,) smoothing coefficients in [0, 1).
    """

    @staticmethod
    def forward(ctx, x, a):
        y = torch.empty_like(x)
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = a * state + (1 - a) * x[:, t]
            y[:, t] = state
        ctx.save_for_backward(x, a, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_y):
        x, a, y = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        grad_a = torch.zeros_like(a)
        acc = torch.zeros_like(a)
        for t in range(x.shape[1] - 1, -1, -1):
            acc = grad_y[:, t] + a * acc
            grad_x[:, t] = (1 - a) * acc
            prev = y[:, t - 1] if t > 0 else torch.zeros_like(a)
            grad_a = grad_a + acc * (prev - x[:, t])
        return grad_x, grad_a

import torch
import torch.nn as nn


class OnePoleFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a):
        # x: (B, C, T)  a: (C,)
        state = torch.zeros_like(x[..., 0])
        ys = []
        for t in range(x.shape[-1]):
            state = a * state + (1 - a) * x[..., t]
            ys.append(state)
        y = torch.stack(ys, -1)
        ctx.save_for_backward(x, a, y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gy):
        x, a, y = ctx.saved_tensors
        carry = torch.zeros_like(gy[..., 0])
        hs = []
        for t in range(x.shape[-1] - 1, -1, -1):
            carry = gy[..., t] + a * carry
            hs.append(carry)
        h = torch.stack(hs[::-1], -1)
        before = torch.cat([torch.zeros_like(y[..., :1]), y[..., :-1]], -1)
        ga = (h * (y - x)).sum((0, 2))
        return h * (1 - a).unsqueeze(-1), ga


class OnePole(nn.Module):
    """Learnable first-order low-pass per channel."""

    def __init__(self, channels):
        super().__init__()
        self.raw = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return OnePoleFunction.apply(x, torch.sigmoid(self.raw))

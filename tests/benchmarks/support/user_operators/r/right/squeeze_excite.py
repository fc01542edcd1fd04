import torch
import torch.nn as nn


class _SqueezeExcite(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w1, w2):
        s = x.mean((2, 3))
        h = torch.relu(s @ w1.t())
        a = torch.sigmoid(h @ w2.t())
        ctx.save_for_backward(x, w1, w2)
        return x * a[:, :, None, None]

    @staticmethod
    def backward(ctx, gy):
        x, w1, w2 = ctx.saved_tensors
        s = x.mean((2, 3))
        h = torch.relu(s @ w1.t())
        a = torch.sigmoid(h @ w2.t())
        ga = (gy * x).sum((2, 3)) * a * (1 - a)
        gh = (ga @ w2) * (h > 0)
        gs = gh @ w1
        area = x.shape[2] * x.shape[3]
        gx = gy * a[:, :, None, None] + gs[:, :, None, None] / area
        return gx, gh.t() @ s, ga.t() @ h


class SEBlock(nn.Module):
    """
    Squeeze-and-excitation.

    Args:
        channels: C of the (B, C, H, W) input
        reduction: C must be divisible by it
    """

    def __init__(self, channels: int, reduction: int = 4):
        super().__init__()
        if channels % reduction:
            raise ValueError(f"{channels} channels cannot be reduced by {reduction}")
        mid = channels // reduction
        self.fc1 = nn.Parameter(torch.randn(mid, channels) * channels ** -0.5)
        self.fc2 = nn.Parameter(torch.randn(channels, mid) * mid ** -0.5)

    def forward(self, x):
        return _SqueezeExcite.apply(x, self.fc1, self.fc2)

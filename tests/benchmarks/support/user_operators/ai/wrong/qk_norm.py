import torch
from torch import nn


class _HeadL2(torch.autograd.Function):
    """x (B, T, H, D) to unit length per head times gain (H,)."""

    @staticmethod
    def forward(ctx, x, gain, eps):
        ctx.save_for_backward(x, gain)
        ctx.eps = eps
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps) * gain[:, None]

    @staticmethod
    def backward(ctx, g):
        x, gain = ctx.saved_tensors
        inv = torch.rsqrt(x.square().sum(-1, keepdim=True) + ctx.eps)
        n = x * inv
        gn = g * gain[:, None]
        gx = inv * (gn - n * (gn * n).sum(-1, keepdim=True))
        g_gain = (g * n).sum((0, 1))
        return gx, g_gain, None


class QKNorm(nn.Module):
    """q, k = QKNorm(heads)(q, k); kv_heads defaults to heads."""

    def __init__(self, heads, kv_heads=None, init=10.0, eps=1e-6):
        super().__init__()
        self.q_gain = nn.Parameter(torch.full((heads,), init))
        self.k_gain = nn.Parameter(torch.ones(kv_heads or heads))
        self.eps = eps

    def forward(self, q, k):
        return _HeadL2.apply(q, self.q_gain, self.eps), _HeadL2.apply(k, self.k_gain, self.eps)

import torch
import torch.nn.functional as F


def _shift(v, d):
    """result[..., t] = v[..., t + d], zeros from outside"""
    T = v.shape[-1]
    if abs(d) >= T:
        return torch.zeros_like(v)
    return F.pad(v[..., d:], (0, d)) if d >= 0 else F.pad(v[..., :d], (-d, 0))


class Involution1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        # x: B G C T   w: B G K T, K odd
        ctx.save_for_backward(x, w)
        K = w.shape[2]
        return sum(w[:, :, k:k + 1] * _shift(x, k - K // 2) for k in range(K))

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        K = w.shape[2]
        gx = sum(_shift(w[:, :, k:k + 1] * g, K // 2 - k) for k in range(K))
        gw = torch.stack([(g * _shift(x, k - K // 2)).sum(2) for k in range(K)], 2)
        return gx, gw

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _weights(d, k):
    w = [torch.ones_like(d)]
    for i in range(1, k):
        w.append(w[-1] * (i - 1 - d) / i)
    return torch.stack(w, -1)


class FracDiff(Function):
    # (1 - L)^d on x (B, C, T), one order d per channel, truncated to `window` lags

    @staticmethod
    def forward(ctx, x, d, window=None):
        T = x.shape[-1]
        K = T if window is None else min(window, T)
        w = _weights(d, K)
        y = torch.zeros_like(x)
        for k in range(K):
            y[..., k:] += w[:, k, None] * x[..., :T - k]
        ctx.save_for_backward(x, d)
        ctx.K = K
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        x, d = ctx.saved_tensors
        T = x.shape[-1]
        gx = torch.zeros_like(x)
        gd = torch.zeros_like(d)
        w, dw = torch.ones_like(d), torch.zeros_like(d)
        for k in range(ctx.K):
            if k > 0:
                dw = (dw * (k - 1 - d) - w) / k
                w = w * (k - 1 - d) / k
            gx[..., :T - k] += w[:, None] * gy[..., k:]
            gd += dw * (gy[..., k:] * x[..., :T - k]).sum((0, 2))
        return gx, gd, None

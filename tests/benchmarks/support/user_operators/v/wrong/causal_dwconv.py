import torch
import torch.nn.functional as F


class CausalDWConv(torch.autograd.Function):
    # x: (B, C, T)   w: (C, K)   left padded with zeros, y[t] = sum_k w[k] x[t - K + 1 + k]
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        K, T = w.shape[1], x.shape[-1]
        xp = F.pad(x, (K - 1, 0))
        y = 0
        for k in range(K):
            y = y + w[:, k, None] * xp[..., k:k + T]
        return y

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        K, T = w.shape[1], x.shape[-1]
        xp = F.pad(x, (K - 1, 0))
        dyp = F.pad(dy, (0, K - 1))
        dx, dw = 0, []
        for k in range(K):
            dx = dx + w[:, k, None] * dyp[..., K - 1 - k:K - 1 - k + T]
            dw.append((dy * xp[..., k:k + T]).sum((0, 2)))
        return dx, torch.stack(dw[::-1], 1)

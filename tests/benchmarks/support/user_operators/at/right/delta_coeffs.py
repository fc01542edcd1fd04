import torch
import torch.nn as nn


class _DeltaFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, win):
        # x: B x T x D
        ctx.win = win
        T = x.size(1)
        xp = torch.cat([x[:, :1].expand(-1, win, -1), x, x[:, -1:].expand(-1, win, -1)], 1)
        out = torch.zeros_like(x)
        for n in range(1, win + 1):
            out += n * (xp[:, win + n:win + n + T] - xp[:, win - n:win - n + T])
        return out / (2 * sum(n * n for n in range(1, win + 1)))

    @staticmethod
    def backward(ctx, dy):
        win = ctx.win
        B, T, D = dy.shape
        dy = dy / (2 * sum(n * n for n in range(1, win + 1)))
        gp = dy.new_zeros(B, T + 2 * win, D)
        for n in range(1, win + 1):
            gp[:, win + n:win + n + T] += n * dy
            gp[:, win - n:win - n + T] -= n * dy
        gx = gp[:, win:win + T].clone()
        gx[:, 0] += gp[:, :win].sum(1)
        gx[:, -1] += gp[:, win + T:].sum(1)
        return gx, None


class Deltas(nn.Module):
    """Static, delta and delta-delta features, HTK style (edges replicated)."""

    def __init__(self, win=2, order=2):
        super().__init__()
        self.win, self.order = win, order

    def forward(self, x):
        feats = [x]
        for _ in range(self.order):
            feats.append(_DeltaFn.apply(feats[-1], self.win))
        return torch.cat(feats, -1)

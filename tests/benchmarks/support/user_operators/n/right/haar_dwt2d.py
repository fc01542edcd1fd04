import torch
import torch.nn.functional as F


class HaarDWT2d(torch.autograd.Function):
    """One level of the orthonormal 2-D Haar transform.

    x: (N, C, H, W); odd sides are extended by repeating the last row or column.
    Returns LL, LH, HL, HH, each (N, C, ceil(H / 2), ceil(W / 2)).
    """

    @staticmethod
    def forward(ctx, x):
        H, W = x.shape[-2:]
        ctx.size = (H, W)
        if H % 2 or W % 2:
            x = F.pad(x, (0, W % 2, 0, H % 2), mode="replicate")
        a, b = x[..., 0::2, 0::2], x[..., 0::2, 1::2]
        c, d = x[..., 1::2, 0::2], x[..., 1::2, 1::2]
        return (a + b + c + d) / 2, (a + b - c - d) / 2, (a - b + c - d) / 2, (a - b - c + d) / 2

    @staticmethod
    def backward(ctx, ll, lh, hl, hh):
        H, W = ctx.size
        a, b = (ll + lh + hl + hh) / 2, (ll + lh - hl - hh) / 2
        c, d = (ll - lh + hl - hh) / 2, (ll - lh - hl + hh) / 2
        top = torch.stack((a, b), -1).flatten(-2)
        bottom = torch.stack((c, d), -1).flatten(-2)
        g = torch.stack((top, bottom), -2).flatten(-3, -2)
        if H % 2:
            g = torch.cat((g[..., :H - 1, :], g[..., H - 1:, :].sum(-2, keepdim=True)), -2)
        if W % 2:
            g = torch.cat((g[..., :W - 1], g[..., W - 1:].sum(-1, keepdim=True)), -1)
        return g

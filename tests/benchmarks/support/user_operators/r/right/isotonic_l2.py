import torch
from torch.autograd.function import once_differentiable


class IsotonicL2(torch.autograd.Function):
    # y, w (N,), w > 0
    @staticmethod
    def forward(ctx, y, w):
        blocks = []
        for i in range(len(y)):
            blocks.append([y[i] * w[i], w[i], i, i + 1])
            while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
                s, q, _, hi = blocks.pop()
                blocks[-1][0] = blocks[-1][0] + s
                blocks[-1][1] = blocks[-1][1] + q
                blocks[-1][3] = hi
        out = torch.empty_like(y)
        for s, q, lo, hi in blocks:
            out[lo:hi] = s / q
        ctx.blocks = [(lo, hi) for _, _, lo, hi in blocks]
        ctx.save_for_backward(y, w, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, w, out = ctx.saved_tensors
        gy = torch.empty_like(y)
        gw = torch.empty_like(w)
        for lo, hi in ctx.blocks:
            s = g[lo:hi].sum() / w[lo:hi].sum()
            gy[lo:hi] = s * w[lo:hi]
            gw[lo:hi] = s * (y[lo:hi] - out[lo:hi])
        return gy, gw

import torch
from torch.autograd import Function


class SpaceToDepth(Function):
    """(B, C, H, W) -> (B, r*r*C, H/r, W/r), block position slowest (TensorFlow's order)."""

    @staticmethod
    def forward(ctx, x, r):
        b, c, h, w = x.shape
        if h % r or w % r:
            raise ValueError(f"{h}x{w} is not divisible by {r}")
        ctx.r = r
        x = x.reshape(b, c, h // r, r, w // r, r)
        # b, c, i, p, j, q -> b, p, q, c, i, j
        return x.permute(0, 3, 5, 1, 2, 4).reshape(b, r * r * c, h // r, w // r)

    @staticmethod
    def backward(ctx, g):
        r = ctx.r
        b, d, h, w = g.shape
        g = g.reshape(b, r, r, d // (r * r), h, w)
        g = g.permute(0, 3, 4, 2, 5, 1)
        return g.reshape(b, d // (r * r), h * r, w * r), None

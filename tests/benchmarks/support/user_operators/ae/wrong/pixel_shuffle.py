import torch


class _PixelShuffle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, r):
        ctx.r = r
        b, c, h, w = x.shape
        y = x.reshape(b, c // (r * r), r, r, h, w)
        return y.permute(0, 1, 4, 2, 5, 3).reshape(b, c // (r * r), h * r, w * r)

    @staticmethod
    def backward(ctx, g):
        r = ctx.r
        b, c, hr, wr = g.shape
        g = g.reshape(b, c, hr // r, r, wr // r, r)
        return g.permute(0, 1, 5, 3, 2, 4).reshape(b, c * r * r, hr // r, wr // r), None


def depth_to_space(x, block_size: int = 2):
    """(B, C * r * r, H, W) -> (B, C, H * r, W * r)"""
    if x.dim() != 4 or x.shape[1] % block_size ** 2:
        raise ValueError(f"cannot rearrange {tuple(x.shape)} in blocks of {block_size}")
    return _PixelShuffle.apply(x, block_size)

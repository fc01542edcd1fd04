import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def unnormalize(coord, size, align_corners):
    if align_corners:
        return (coord + 1) / 2 * (size - 1)
    return ((coord + 1) * size - 1) / 2


class BilinearWarp(Function):
    """img (C, H, W) read at grid (P, 2) of (x, y) in [-1, 1]; zero padding -> (C, P)"""

    @staticmethod
    def forward(ctx, img, grid, align_corners=False):
        C, H, W = img.shape
        x = unnormalize(grid[:, 0], W, align_corners)
        y = unnormalize(grid[:, 1], H, align_corners)
        ctx.save_for_backward(img, x, y)
        ctx.align_corners = align_corners
        out = img.new_zeros(C, grid.shape[0])
        for xi, yi, wx, wy in BilinearWarp.taps(x, y):
            v, ok = BilinearWarp.read(img, xi, yi)
            out += v * (wx * wy * ok)
        return out

    @staticmethod
    def taps(x, y):
        x0, y0 = x.floor(), y.floor()
        fx, fy = x - x0, y - y0
        return [(x0, y0, 1 - fx, 1 - fy), (x0 + 1, y0, fx, 1 - fy),
                (x0, y0 + 1, 1 - fx, fy), (x0 + 1, y0 + 1, fx, fy)]

    @staticmethod
    def read(img, xi, yi):
        C, H, W = img.shape
        ok = ((xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)).to(img.dtype)
        return img[:, yi.clamp(0, H - 1).long(), xi.clamp(0, W - 1).long()], ok

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        img, x, y = ctx.saved_tensors
        C, H, W = img.shape
        g_img = grad.new_zeros(C, H * W)
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        signs = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
        for (xi, yi, wx, wy), (sx, sy) in zip(BilinearWarp.taps(x, y), signs):
            v, ok = BilinearWarp.read(img, xi, yi)
            flat = (yi.clamp(0, H - 1) * W + xi.clamp(0, W - 1)).long()
            g_img.index_add_(1, flat, grad * (wx * wy * ok))
            dot = (grad * v).sum(0) * ok
            gx += sx * wy * dot
            gy += sy * wx * dot
        if ctx.align_corners:
            mult = (W - 1) / 2, (H - 1) / 2
        else:
            mult = W / 2, H / 2
        return g_img.view(C, H, W), torch.stack([gx * mult[0], gy * mult[1]], 1), None

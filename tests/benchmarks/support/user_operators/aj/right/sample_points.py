import torch
from torch.autograd.function import once_differentiable


def corners(xy, H, W):
    x0, y0 = xy[:, 0].floor(), xy[:, 1].floor()
    fx, fy = xy[:, 0] - x0, xy[:, 1] - y0
    for dy in (0, 1):
        for dx in (0, 1):
            xi, yi = (x0 + dx).long(), (y0 + dy).long()
            ok = ((xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)).to(xy.dtype)
            idx = yi.clamp(0, H - 1) * W + xi.clamp(0, W - 1)
            wx, wy = (fx if dx else 1 - fx), (fy if dy else 1 - fy)
            yield idx, ok, wx, wy, 2 * dx - 1, 2 * dy - 1


class SamplePoints(torch.autograd.Function):
    """feat (C, H, W), xy (N, 2) in pixels -> (C, N); outside counts as zero"""

    @staticmethod
    def forward(ctx, feat, xy):
        ctx.save_for_backward(feat, xy)
        C, H, W = feat.shape
        f = feat.reshape(C, H * W)
        return sum(f[:, i] * (ok * wx * wy) for i, ok, wx, wy, _, _ in corners(xy, H, W))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        feat, xy = ctx.saved_tensors
        C, H, W = feat.shape
        f = feat.reshape(C, H * W)
        gf = feat.new_zeros(feat.shape)
        gxy = torch.zeros_like(xy)
        for i, ok, wx, wy, sx, sy in corners(xy, H, W):
            gf.reshape(C, H * W).index_add_(1, i, g * (ok * wx * wy))
            v = (g * f[:, i]).sum(0) * ok
            gxy[:, 0] += sx * v * wy
            gxy[:, 1] += sy * v * wx
        return gf, gxy

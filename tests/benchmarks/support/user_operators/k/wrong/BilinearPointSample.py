import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def _corners(pts, h, w):
    """Yields flat index, validity, weight and the weight's derivatives for the four neighbours."""
    x, y = pts[:, 0], pts[:, 1]
    x0, y0 = torch.floor(x), torch.floor(y)
    fx, fy = x - x0, y - y0
    for dx in (0, 1):
        for dy in (0, 1):
            xi, yi = (x0 + dx).long(), (y0 + dy).long()
            ok = (xi >= 0) & (xi < w) & (yi >= 0) & (yi < h)
            flat = yi.clamp(0, h - 1) * w + xi.clamp(0, w - 1)
            wx = fx if dx else 1 - fx
            wy = fy if dy else 1 - fy
            sx, sy = (1 if dx else -1), (1 if dy else -1)
            yield flat, ok, wx * wy, sx * wy, sy * wx


class BilinearPointSample(Function):
    """Samples a feature map (C, H, W) at points (N, 2) given as (x, y) in pixels.

    Neighbours outside of the map count as zeros. Returns (N, C).
    """

    @staticmethod
    def forward(ctx, fmap, pts):
        c, h, w = fmap.shape
        assert pts.dim() == 2 and pts.size(1) == 2
        flat_map = fmap.reshape(c, h * w)
        out = fmap.new_zeros(pts.size(0), c)
        for flat, ok, wt, _, _ in _corners(pts, h, w):
            out += flat_map[:, flat].t() * (wt * ok).unsqueeze(1)
        ctx.save_for_backward(fmap, pts)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        fmap, pts = ctx.saved_tensors
        c, h, w = fmap.shape
        flat_map = fmap.reshape(c, h * w)
        gmap = torch.zeros_like(flat_map)
        gx = pts.new_zeros(pts.size(0))
        gy = pts.new_zeros(pts.size(0))
        for flat, ok, wt, dwx, dwy in _corners(pts, h, w):
            gmap.index_add_(1, flat, (grad * (wt * ok).unsqueeze(1)).t())
            dot = (grad * flat_map[:, flat].t()).sum(1) * ok
            gx += dot * dwx
            gy += dot * dwy
        return gmap.reshape(c, h, w), torch.stack((gy, gx), dim=1)

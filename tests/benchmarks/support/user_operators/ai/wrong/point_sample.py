import torch
from torch.autograd.function import once_differentiable


def _grid(pts, h, w, align_corners):
    size = pts.new_tensor([w, h])
    return pts * (size - 1) if align_corners else pts * size - 0.5


def _corners(feat, xy):
    """Yields flat index, weights along x and y, their slopes, and a validity mask per corner."""
    h, w = feat.shape[-2:]
    base = xy.floor()
    frac = xy - base
    base = base.long()
    for dx in (0, 1):
        for dy in (0, 1):
            x, y = base[..., 0] + dx, base[..., 1] + dy
            ok = (x >= 0) & (x < w) & (y >= 0) & (y < h)
            wx = frac[..., 0] if dx else 1 - frac[..., 0]
            wy = frac[..., 1] if dy else 1 - frac[..., 1]
            yield y.clamp(0, h - 1) * w + x.clamp(0, w - 1), wx, wy, 2 * dx - 1, 2 * dy - 1, ok.to(feat.dtype)


class PointSample(torch.autograd.Function):
    """Bilinear features at points (PointRend).

    feat: (B, C, H, W); pts: (B, N, 2), x and y in [0, 1]. Returns (B, C, N); outside is zero.
    """

    @staticmethod
    def forward(ctx, feat, pts, align_corners=True):
        b, c, h, w = feat.shape
        flat = feat.flatten(2)
        out = feat.new_zeros(b, c, pts.size(1))
        for idx, wx, wy, _, _, ok in _corners(feat, _grid(pts, h, w, align_corners)):
            out = out + flat.gather(2, idx[:, None].expand(-1, c, -1)) * (wx * wy * ok)[:, None]
        ctx.save_for_backward(feat, pts)
        ctx.align_corners = align_corners
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        feat, pts = ctx.saved_tensors
        b, c, h, w = feat.shape
        flat = feat.flatten(2)
        g_flat = torch.zeros(b, c, h * w, dtype=feat.dtype, device=feat.device)
        gx = torch.zeros_like(pts[..., 0])
        gy = torch.zeros_like(gx)
        for idx, wx, wy, sx, sy, ok in _corners(feat, _grid(pts, h, w, ctx.align_corners)):
            idx = idx[:, None].expand(-1, c, -1)
            g_flat.scatter_add_(2, idx, grad * (wx * wy * ok)[:, None])
            along = (grad * flat.gather(2, idx)).sum(1) * ok
            gx += along * wy * sx
            gy += along * wx * sy
        span = (w - 1, h - 1)
        return g_flat.view(b, c, h, w), torch.stack([gx * span[0], gy * span[1]], -1), None

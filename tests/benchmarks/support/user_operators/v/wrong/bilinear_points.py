import torch
from torch.autograd import Function


class SamplePoints(Function):
    """Bilinear sampling of a feature map at normalised points (align_corners=True).

    feat: (C, H, W)
    pts:  (P, 2) as (x, y) within [-1, 1]
    returns (C, P)
    """

    @staticmethod
    def corners(feat, pts):
        C, H, W = feat.shape
        x = (pts[:, 0] + 1) / 2 * (W - 1)
        y = (pts[:, 1] + 1) / 2 * (H - 1)
        x0 = x.detach().floor().clamp(0, max(W - 2, 0))
        y0 = y.detach().floor().clamp(0, max(H - 2, 0))
        wx, wy = x - x0, y - y0
        x0, y0 = x0.long(), y0.long()
        x1, y1 = (x0 + 1).clamp(max=W - 1), (y0 + 1).clamp(max=H - 1)
        return wx, wy, (y0 * W + x0, y0 * W + x1, y1 * W + x0, y1 * W + x1)

    @staticmethod
    def forward(ctx, feat, pts):
        wx, wy, idx = SamplePoints.corners(feat, pts)
        ctx.save_for_backward(feat, pts)
        a, b, c, d = (feat.flatten(1)[:, i] for i in idx)
        return (1 - wy) * ((1 - wx) * a + wx * b) + wy * ((1 - wx) * c + wx * d)

    @staticmethod
    def backward(ctx, g):
        feat, pts = ctx.saved_tensors
        C, H, W = feat.shape
        wx, wy, idx = SamplePoints.corners(feat, pts)
        flat = feat.flatten(1)
        a, b, c, d = (flat[:, i] for i in idx)
        weights = ((1 - wy) * (1 - wx), (1 - wy) * wx, wy * (1 - wx), wy * wx)
        gf = torch.zeros_like(flat)
        for i, w in zip(idx, weights):
            gf = gf.index_add(1, i, g * w)
        gx = (g * ((1 - wy) * (b - a) + wy * (d - c))).sum(0) * (W - 1) / 2
        gy = (g * ((1 - wx) * (c - a) + wx * (d - b))).sum(0) * (W - 1) / 2
        return gf.view(C, H, W), torch.stack([gx, gy], 1)

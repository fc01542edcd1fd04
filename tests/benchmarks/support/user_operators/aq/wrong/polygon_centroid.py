import torch
from torch.autograd import Function


class PolygonCentroid(Function):
    """verts (..., n, 2), simple polygon, counter-clockwise -> area (...), centroid (..., 2)"""

    @staticmethod
    def forward(ctx, verts):
        x, y = verts.unbind(-1)
        xn, yn = x.roll(-1, -1), y.roll(-1, -1)
        cr = x * yn - xn * y
        area = cr.sum(-1) / 2
        cx = ((x + xn) * cr).sum(-1) / (6 * area)
        cy = ((y + yn) * cr).sum(-1) / (6 * area)
        ctx.save_for_backward(verts)
        return area, torch.stack([cx, cy], -1)

    @staticmethod
    def backward(ctx, g_area, g_cen):
        verts, = ctx.saved_tensors
        x, y = verts.unbind(-1)
        xn, yn = x.roll(-1, -1), y.roll(-1, -1)
        cr = x * yn - xn * y
        area = cr.sum(-1, keepdim=True) / 2
        cx = ((x + xn) * cr).sum(-1, keepdim=True) / (6 * area)
        cy = ((y + yn) * cr).sum(-1, keepdim=True) / (6 * area)
        gx, gy = g_cen[..., :1], g_cen[..., 1:]

        gA = g_area.unsqueeze(-1)
        gcr = gA / 2 + (gx * (x + xn) + gy * (y + yn)) / (6 * area)
        pair = cr + cr.roll(1, -1)
        gcr_prev = gcr.roll(1, -1)
        dx = gcr * yn - gcr_prev * y.roll(1, -1) + gx * pair / (6 * area)
        dy = gcr_prev * x.roll(1, -1) - gcr * xn + gy * pair / (6 * area)
        return torch.stack([dx, dy], -1)

import torch


class SampleAtPoints(torch.autograd.Function):
    """feat (C, H, W), points (N, 2) as x, y in pixels -> (N, C); zero outside of the map"""

    @staticmethod
    def forward(ctx, feat, points):
        ctx.save_for_backward(feat, points)
        return sum(f * w[:, None] for f, _, w, _, _ in _corners(feat, points))

    @staticmethod
    def backward(ctx, grad):
        feat, points = ctx.saved_tensors
        C, H, W = feat.shape
        d_feat = feat.new_zeros(H * W, C)
        d_x = d_y = 0
        for f, (lin, ok), w, wx, wy in _corners(feat, points):
            d_feat = d_feat.index_add(0, lin, grad * w[:, None])
            dot = (grad * f).sum(-1)
            d_x = d_x + dot * wx
            d_y = d_y + dot * wy
        return d_feat.t().reshape(C, H, W), torch.stack([d_x, d_y], -1)


def _corners(feat, points):
    C, H, W = feat.shape
    x, y = points.unbind(-1)
    x0, y0 = x.detach().floor(), y.detach().floor()
    fx, fy = x - x0, y - y0
    flat = feat.reshape(C, H * W).t()
    for dx in (0, 1):
        for dy in (0, 1):
            xi, yi = x0.long() + dx, y0.long() + dy
            ok = ((xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)).to(feat.dtype)
            lin = yi.clamp(0, H - 1) * W + xi.clamp(0, W - 1)
            ax, ay = (fx if dx else 1 - fx), (fy if dy else 1 - fy)
            yield flat[lin] * ok[:, None], (lin, ok), ax * ay, (2 * dx - 1) * ay, (2 * dy - 1) * ax

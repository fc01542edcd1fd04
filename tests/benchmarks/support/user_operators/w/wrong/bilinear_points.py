import torch


def _taps(p, H, W):
    x0, y0 = p.detach().floor().unbind(-1)
    fx, fy = p[:, 0] - x0, p[:, 1] - y0
    for a in (0, 1):
        for b in (0, 1):
            xi, yi = x0 + a, y0 + b
            ok = (xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)
            idx = (yi.clamp(0, H - 1) * W + xi.clamp(0, W - 1)).long()
            wx = fx if a else 1 - fx
            wy = fy if b else 1 - fy
            yield idx, ok.to(p.dtype), wx, wy, 2 * a - 1, 2 * b - 1


class SamplePoints(torch.autograd.Function):
    """Bilinear samples of an image (C, H, W) at pixel coordinates (N, 2) as (x, y), zero outside."""

    @staticmethod
    def forward(ctx, img, pts):
        ctx.save_for_backward(img, pts)
        C, H, W = img.shape
        flat = img.reshape(C, -1)
        return sum(flat[:, i] * (ok * wx * wy) for i, ok, wx, wy, _, _ in _taps(pts, H, W))

    @staticmethod
    def backward(ctx, g):
        img, pts = ctx.saved_tensors
        C, H, W = img.shape
        flat = img.reshape(C, -1)
        gimg, gx, gy = torch.zeros_like(flat), 0, 0
        for i, ok, wx, wy, sx, sy in _taps(pts, H, W):
            gimg = gimg.index_add(1, i, g * (ok * wx * wy))
            inner = (g * flat[:, i]).sum(0)
            gx = gx + inner * sx * wy
            gy = gy + inner * sy * wx
        return gimg.reshape(C, H, W), torch.stack([gx, gy], -1)

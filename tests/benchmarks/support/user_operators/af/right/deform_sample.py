import torch
from torch.autograd.function import once_differentiable


def _corners(pos, H, W):
    """Four taps of every location: list of (flat index, validity, (wy, wx), (sy, sx))."""
    y, x = pos[:, 0], pos[:, 1]
    y0, x0 = y.floor(), x.floor()
    ly, lx = y - y0, x - x0
    taps = []
    for dy in (0, 1):
        for dx in (0, 1):
            yy, xx = (y0 + dy).long(), (x0 + dx).long()
            ok = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            flat = yy.clamp(0, H - 1) * W + xx.clamp(0, W - 1)
            wy = ly if dy else 1 - ly
            wx = lx if dx else 1 - lx
            taps.append((flat, ok.to(pos.dtype), wy, wx, 2 * dy - 1, 2 * dx - 1))
    return taps


class _ModulatedSample(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feat, base, offset, mask):
        C, H, W = feat.shape
        pos = base + offset
        flat = feat.reshape(C, -1)
        val = sum(flat[:, i] * (ok * wy * wx) for i, ok, wy, wx, _, _ in _corners(pos, H, W))
        ctx.save_for_backward(feat, pos, mask, val)
        return val * mask

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        feat, pos, mask, val = ctx.saved_tensors
        C, H, W = feat.shape
        flat = feat.reshape(C, -1)
        g_mask = (grad * val).sum(0)
        g_val = grad * mask
        g_feat = torch.zeros_like(flat)
        g_off = torch.zeros_like(pos)
        for i, ok, wy, wx, sy, sx in _corners(pos, H, W):
            g_feat.index_add_(1, i, g_val * (ok * wy * wx))
            dot = (g_val * flat[:, i]).sum(0) * ok
            g_off[:, 0] += sy * wx * dot
            g_off[:, 1] += sx * wy * dot
        return g_feat.view(C, H, W), g_off, g_off, g_mask


def deform_sample(feat, base, offset, mask=None):
    """feat (C, H, W) sampled at base + offset (K, 2; y before x), times mask (K,). Zeros outside."""
    if mask is None:
        mask = feat.new_ones(base.shape[0])
    return _ModulatedSample.apply(feat, base, offset, mask)

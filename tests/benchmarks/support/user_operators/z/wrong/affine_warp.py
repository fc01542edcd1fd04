import torch
from torch.autograd.function import once_differentiable


def _base(H, W, like):
    ys = torch.linspace(-1, 1, H, dtype=like.dtype, device=like.device)
    xs = torch.linspace(-1, 1, W, dtype=like.dtype, device=like.device)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack([gx, gy, torch.ones_like(gx)], -1).reshape(-1, 3)


def _corners(x, y, H, W):
    x0, y0 = x.floor(), y.floor()
    fx, fy = x - x0, y - y0
    for dy, wy, sy in ((0, 1 - fy, -1.0), (1, fy, 1.0)):
        for dx, wx, sx in ((0, 1 - fx, -1.0), (1, fx, 1.0)):
            cx, cy = x0.long() + dx, y0.long() + dy
            ok = (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
            idx = cy.clamp(0, H - 1) * W + cx.clamp(0, W - 1)
            yield idx, wx * wy * ok, sx * wy * ok, sy * wx * ok


class AffineWarp(torch.autograd.Function):
    """img (B, C, H, W), theta (B, 2, 3) in normalised coordinates (corners aligned), zeros outside."""

    @staticmethod
    def forward(ctx, img, theta):
        B, C, H, W = img.shape
        xy = _base(H, W, img) @ theta.mT
        x, y = (xy[..., 0] + 1) * (W - 1) / 2, (xy[..., 1] + 1) * (H - 1) / 2
        flat = img.reshape(B, C, H * W)
        out = torch.zeros_like(flat)
        for idx, w, _, _ in _corners(x, y, H, W):
            out += flat.gather(2, idx.unsqueeze(1).expand(-1, C, -1)) * w.unsqueeze(1)
        ctx.save_for_backward(img, x, y)
        return out.reshape(B, C, H, W)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        img, x, y = ctx.saved_tensors
        B, C, H, W = img.shape
        flat, g = img.reshape(B, C, H * W), grad.reshape(B, C, H * W)
        gimg = torch.zeros_like(flat)
        gx, gy = torch.zeros_like(x), torch.zeros_like(y)
        for idx, w, wx, wy in _corners(x, y, H, W):
            idx = idx.unsqueeze(1).expand(-1, C, -1)
            gimg.scatter_add_(2, idx, g * w.unsqueeze(1))
            inner = (g * flat.gather(2, idx)).sum(1)
            gx += inner * wx
            gy += inner * wy
        gxy = torch.stack([gx * (W - 1) / 2, gy * (W - 1) / 2], -1)
        return gimg.reshape(B, C, H, W), gxy.mT @ _base(H, W, img)

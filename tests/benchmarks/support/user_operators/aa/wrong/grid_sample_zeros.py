import torch
from torch.autograd.function import once_differentiable


class BilinearSampler(torch.autograd.Function):
    """Sample img (B, C, H, W) at pixel coordinates uv (B, N, 2), zero padding -> (B, C, N)"""

    @staticmethod
    def corners(uv, H, W):
        x, y = uv[..., 0], uv[..., 1]
        x0, y0 = x.floor(), y.floor()
        fx, fy = x - x0, y - y0
        for dy in (0, 1):
            for dx in (0, 1):
                xi, yi = x0.long() + dx, y0.long() + dy
                ok = (xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)
                wx = fx if dx else 1 - fx
                wy = fy if dy else 1 - fy
                idx = yi.clamp(0, H - 1) * W + xi.clamp(0, W - 1)
                yield idx, ok, wx, wy, 2 * dx - 1, 2 * dy - 1

    @staticmethod
    def forward(ctx, img, uv):
        B, C, H, W = img.shape
        ctx.save_for_backward(img, uv)
        flat = img.reshape(B, C, H * W)
        out = 0
        for idx, ok, wx, wy, _, _ in BilinearSampler.corners(uv, H, W):
            v = flat.gather(2, idx[:, None].expand(-1, C, -1))
            out = out + v * (wx * wy * ok)[:, None]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        img, uv = ctx.saved_tensors
        B, C, H, W = img.shape
        flat = img.reshape(B, C, H * W)
        g_img = img.new_zeros(B, C, H * W)
        gx = gy = 0
        for idx, ok, wx, wy, sx, sy in BilinearSampler.corners(uv, H, W):
            index = idx[:, None].expand(-1, C, -1)
            g_img.scatter_add_(2, index, g * (wx * wy * ok)[:, None])
            dot = (g * flat.gather(2, index)).sum(1)
            gx = gx + sx * wy * dot
            gy = gy + sy * wx * dot
        return g_img.view_as(img), torch.stack([gx, gy], -1)

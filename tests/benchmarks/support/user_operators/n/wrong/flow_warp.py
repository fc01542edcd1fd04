import torch
from torch.autograd.function import once_differentiable


def _corners(flow, H, W):
    ys = torch.arange(H, dtype=flow.dtype, device=flow.device).view(1, H, 1) + flow[:, 1]
    xs = torch.arange(W, dtype=flow.dtype, device=flow.device).view(1, 1, W) + flow[:, 0]
    y0, x0 = ys.floor(), xs.floor()
    return y0.long(), x0.long(), ys - y0, xs - x0


def _index(y, x, H, W):
    inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
    flat = y.clamp(0, H - 1) * W + x.clamp(0, W - 1)
    return flat.flatten(1), inside


class FlowWarp(torch.autograd.Function):
    """Backward warping with bilinear sampling; outside the image is zero.

    image: (N, C, H, W)
    flow: (N, 2, H, W), channel 0 is the displacement along x in pixels, channel 1 along y

    At whole-pixel displacements the flow's gradient is the one from the right (floor cell).
    """

    @staticmethod
    def forward(ctx, image, flow):
        N, C, H, W = image.shape
        y0, x0, wy, wx = _corners(flow, H, W)
        flat = image.flatten(2)
        out = torch.zeros_like(image, memory_format=torch.contiguous_format)
        for dy in (0, 1):
            for dx in (0, 1):
                idx, inside = _index(y0 + dy, x0 + dx, H, W)
                w = (wy if dy else 1 - wy) * (wx if dx else 1 - wx) * inside
                val = flat.gather(2, idx.unsqueeze(1).expand(-1, C, -1)).view(N, C, H, W)
                out += val * w.unsqueeze(1)
        ctx.save_for_backward(image, flow)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        image, flow = ctx.saved_tensors
        N, C, H, W = image.shape
        y0, x0, wy, wx = _corners(flow, H, W)
        flat = image.flatten(2)
        g_image = torch.zeros(N, C, H * W, dtype=image.dtype, device=image.device)
        g_x = torch.zeros_like(wx)
        g_y = torch.zeros_like(wy)
        for dy in (0, 1):
            for dx in (0, 1):
                idx, inside = _index(y0 + dy, x0 + dx, H, W)
                idx = idx.unsqueeze(1).expand(-1, C, -1)
                a = wy if dy else 1 - wy
                b = wx if dx else 1 - wx
                g_image.scatter_add_(2, idx, (grad * (a * b * inside).unsqueeze(1)).flatten(2))
                dot = (grad * flat.gather(2, idx).view(N, C, H, W)).sum(1) * inside
                g_x += dot * a * (1 if dx else -1)
                g_y += dot * b * (1 if dy else -1)
        return g_image.view(N, C, H, W), torch.stack((g_y, g_x), 1)

import torch
import torch.nn.functional as F


class CostVolume(torch.autograd.Function):
    """Correlation of two feature maps over a window of displacements.

    first, second: (N, C, H, W) -> (N, (2d+1)**2, H, W), d = max_disp; rows of the window vary slowest.
    """

    @staticmethod
    def forward(ctx, first, second, max_disp=1):
        ctx.save_for_backward(first, second)
        ctx.d = max_disp
        N, C, H, W = first.shape
        pad = F.pad(second, [max_disp] * 4)
        maps = []
        for dy in range(2 * max_disp + 1):
            for dx in range(2 * max_disp + 1):
                maps.append((first * pad[:, :, dy:dy + H, dx:dx + W]).mean(1))
        return torch.stack(maps, 1)

    @staticmethod
    def backward(ctx, grad):
        first, second = ctx.saved_tensors
        d = ctx.d
        N, C, H, W = first.shape
        pad = F.pad(second, [d] * 4)
        g1 = torch.zeros_like(first)
        g2 = torch.zeros_like(pad)
        k = 0
        for dy in range(2 * d + 1):
            for dx in range(2 * d + 1):
                g = grad[:, k:k + 1] / C
                g1 = g1 + g * pad[:, :, dy:dy + H, dx:dx + W]
                g2 = g2 + F.pad(g * first, (dy, 2 * d - dy, dx, 2 * d - dx))
                k += 1
        return g1, g2[:, :, d:d + H, d:d + W], None

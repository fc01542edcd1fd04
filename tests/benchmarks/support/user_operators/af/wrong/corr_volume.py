import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CorrelationVolume(Function):
    """
    f1, f2: (C, H, W); out: ((2d+1)^2, H, W), channel (dy + d) * (2d+1) + (dx + d)
    holds mean_c f1[c, y, x] * f2[c, y + dy, x + dx]
    """

    @staticmethod
    def forward(ctx, f1, f2, max_disp=1, stride=1):
        d, (C, H, W) = max_disp * stride, f1.shape
        ctx.shifts = [(dy, dx) for dy in range(-d, d + 1, stride) for dx in range(-d, d + 1, stride)]
        ctx.pad = d
        padded = F.pad(f2, (d, d, d, d))
        ctx.save_for_backward(f1, padded)
        rows = []
        for dy, dx in ctx.shifts:
            rows.append((f1 * padded[:, d + dy:d + dy + H, d + dx:d + dx + W]).mean(0))
        return torch.stack(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        f1, padded = ctx.saved_tensors
        d, (C, H, W) = ctx.pad, f1.shape
        g1, gp = torch.zeros_like(f1), torch.zeros_like(padded)
        for k, (dy, dx) in enumerate(ctx.shifts):
            g = grad[k] / C
            win = (slice(None), slice(d + dy, d + dy + H), slice(d + dx, d + dx + W))
            g1 += g * padded[win]
            gp[:, d - dy:d - dy + H, d - dx:d - dx + W] += g * f1
        return g1, gp[:, d:d + H, d:d + W], None, None

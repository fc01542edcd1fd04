import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class _Frames(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, window, hop, pad):
        n = window.numel()
        if pad:
            x = F.pad(x, (pad, pad), mode="reflect")
        raw = x.unfold(-1, n, hop)
        ctx.save_for_backward(window, raw)
        ctx.hop, ctx.pad, ctx.length = hop, pad, x.shape[-1]
        return raw * window

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        window, raw = ctx.saved_tensors
        hop, pad, n = ctx.hop, ctx.pad, window.numel()
        g_window = (grad * raw).sum((0, 1))
        weighted = grad * window
        gx = grad.new_zeros(grad.shape[0], ctx.length)
        for k in range(grad.shape[1]):
            gx[:, k * hop:k * hop + n] += weighted[:, k]
        if pad:
            # fold the reflected borders back
            left, gx, right = gx[:, :pad], gx[:, pad:-pad].clone(), gx[:, -pad:]
            gx[:, :pad] += left.flip(1)
            gx[:, -pad - 1:-1] += right.flip(1)
        return gx, g_window, None, None


def stft_frames(x, window, hop=None, center=True):
    """Windowed frames (B, frames, n) of signals (B, T); centered frames pad by reflection."""
    n = window.numel()
    return _Frames.apply(x, window, hop or n // 2, n // 2 if center else 0)

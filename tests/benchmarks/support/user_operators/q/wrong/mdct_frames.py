import math

import torch


def mdct_basis(n, like):
    t = torch.arange(2 * n, dtype=like.dtype, device=like.device) + 0.5 + n / 2
    k = torch.arange(n, dtype=like.dtype, device=like.device) + 0.5
    return torch.cos(math.pi / n * t[:, None] * k)


class MDCTFrames(torch.autograd.Function):
    """Windowed MDCT of frames that were cut already.

    frames (..., 2N), window (2N,), both real -> coefficients (..., N).
    """

    @staticmethod
    def forward(ctx, frames, window):
        assert frames.shape[-1] % 2 == 0 and window.shape == frames.shape[-1:]
        assert not frames.is_complex() and not window.is_complex()
        frames = frames * window
        ctx.save_for_backward(frames, window)
        return frames @ mdct_basis(frames.shape[-1] // 2, frames)

    @staticmethod
    def backward(ctx, grad):
        frames, window = ctx.saved_tensors
        back = grad @ mdct_basis(grad.shape[-1], grad).t()
        g_frames = g_window = None
        if ctx.needs_input_grad[0]:
            g_frames = back * window
        if ctx.needs_input_grad[1]:
            g_window = (back * frames).reshape(-1, window.numel()).sum(0)
        return g_frames, g_window

import torch


class FrameAndWindow(torch.autograd.Function):
    """Cut (batch, samples) into overlapping frames and apply the analysis window.

    Returns (batch, frames, win_length); trailing samples that do not fill a frame are dropped.
    """

    @staticmethod
    def forward(ctx, wav, window, hop):
        B, T = wav.shape
        L = window.numel()
        n = (T - L) // hop + 1
        frames = wav.as_strided((B, n, L), (T, hop, 1), wav.storage_offset())
        ctx.save_for_backward(frames.clone(), window)
        ctx.T, ctx.hop = T, hop
        return frames * window

    @staticmethod
    def backward(ctx, grad):
        frames, window = ctx.saved_tensors
        B, n, L = grad.shape
        g_win = (grad * frames).sum((0, 1))
        g_frames = grad * window
        g_wav = grad.new_zeros(B, ctx.T)
        for k in range(n):
            g_wav[:, k * ctx.hop:k * ctx.hop + L] += g_frames[:, k]
        return g_wav, g_win, None

import torch
from torch.autograd.function import once_differentiable


class _OverlapAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, frames, window, hop, eps):
        b, n, win = frames.shape
        length = (n - 1) * hop + win
        idx = (torch.arange(n, device=frames.device)[:, None] * hop + torch.arange(win, device=frames.device)).reshape(-1)
        y = frames.new_zeros(b, length).index_add_(1, idx, (frames * window).reshape(b, -1))
        norm = frames.new_zeros(length).index_add_(0, idx, (window * window).repeat(n)) + eps
        ctx.save_for_backward(window, norm)
        ctx.n, ctx.hop = n, hop
        return y / norm

    @staticmethod
    @once_differentiable
    def backward(ctx, gy):
        window, norm = ctx.saved_tensors
        b, length = gy.shape
        gy = gy / norm
        frames = gy.as_strided((b, ctx.n, window.numel()), (length, ctx.hop, 1))
        return frames * window, None, None, None


def overlap_add(frames, window=None, hop=None, eps=1e-8):
    """Weighted overlap-add with least squares normalisation.

    frames (B, N, win); window (win,), a constant, Hann by default; hop defaults to win // 2.
    Returns (B, (N - 1) * hop + win).
    """
    win = frames.size(-1)
    if window is None:
        window = torch.hann_window(win, dtype=frames.dtype, device=frames.device) + 0.1
    return _OverlapAdd.apply(frames, window.detach(), hop or win // 2, eps)

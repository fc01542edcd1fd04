import torch


def _source(length, win, hop, center, mode, device):
    """(frames, win) positions in the signal; `length` stands for a padded zero."""
    pad = win // 2 if center else 0
    frames = 1 + (length + 2 * pad - win) // hop
    idx = torch.arange(frames, device=device)[:, None] * hop + torch.arange(win, device=device) - pad
    if mode == "reflect":
        idx = idx.abs()
        idx = torch.where(idx >= length, 2 * (length - 1) - idx, idx)
    else:
        idx = torch.where((idx < 0) | (idx >= length), torch.full_like(idx, length), idx)
    return idx


def _take(signal, idx):
    padded = torch.cat([signal, signal.new_zeros(signal.size(0), 1)], 1)
    return padded[:, idx.reshape(-1)].reshape(signal.size(0), *idx.shape)


class Frame(torch.autograd.Function):
    """signal (B, T), window (win,) -> frames (B, N, win)."""

    @staticmethod
    def forward(ctx, signal, window, hop, center=True, pad_mode="reflect"):
        assert pad_mode in ("reflect", "constant")
        assert window.numel() // 2 < signal.size(1), "signal shorter than the padding"
        idx = _source(signal.size(1), window.numel(), hop, center, pad_mode, signal.device)
        ctx.save_for_backward(signal, window)
        ctx.hop, ctx.center, ctx.pad_mode = hop, center, pad_mode
        return _take(signal, idx) * window

    @staticmethod
    def backward(ctx, grad):
        signal, window = ctx.saved_tensors
        b, t = signal.shape
        idx = _source(t, window.numel(), ctx.hop, ctx.center, ctx.pad_mode, signal.device)
        g_signal = g_window = None
        if ctx.needs_input_grad[0]:
            g = (grad * window).reshape(b, -1)
            g_signal = g.new_zeros(b, t + 1).index_add(1, idx.reshape(-1), g)[:, :t]
        if ctx.needs_input_grad[1]:
            g_window = (grad * _take(signal, idx)).mean((0, 1))
        return g_signal, g_window, None, None, None

import torch


def _lookup(signal, pos, mode):
    T = signal.size(-1)
    p = pos.clamp(0, T - 1) if mode == "border" else pos
    lo = p.detach().floor()
    w = (p - lo).unsqueeze(1)
    taps = []
    for i in (lo.long(), lo.long() + 1):
        ok = ((i >= 0) & (i < T)).unsqueeze(1)
        idx = i.clamp(0, T - 1).unsqueeze(1).expand(-1, signal.size(1), -1)
        if mode == "border":
            ok = torch.ones_like(ok)
        taps.append((idx, ok))
    return w, taps


class SampleLine(torch.autograd.Function):
    """Linear interpolation of signals at fractional sample positions.

    signal: (B, C, T), pos: (B, N) in samples -> (B, C, N).
    padding_mode: 'zeros' (samples outside are zero) or 'border' (positions are clamped).
    """

    @staticmethod
    def forward(ctx, signal, pos, padding_mode="zeros"):
        if padding_mode not in ("zeros", "border"):
            raise ValueError(padding_mode)
        if signal.is_complex():
            raise TypeError("signal must be real")
        if signal.size(0) != pos.size(0):
            raise ValueError("batch sizes differ")
        ctx.save_for_backward(signal, pos)
        ctx.mode = padding_mode
        w, ((i0, ok0), (i1, ok1)) = _lookup(signal, pos, padding_mode)
        return signal.gather(2, i0) * ok0 * (1 - w) + signal.gather(2, i1) * ok1 * w

    @staticmethod
    def backward(ctx, grad):
        signal, pos = ctx.saved_tensors
        T = signal.size(-1)
        w, ((i0, ok0), (i1, ok1)) = _lookup(signal, pos, ctx.mode)
        g_signal = torch.zeros_like(signal)
        g_signal = g_signal.scatter_add(2, i0, grad * ok0 * (1 - w)).scatter_add(2, i1, grad * ok1 * w)
        g_pos = (grad * (signal.gather(2, i1) * ok1 - signal.gather(2, i0) * ok0)).sum(1)
        if ctx.mode == "border":
            g_pos = g_pos * (pos < T - 1)
        return g_signal, g_pos, None

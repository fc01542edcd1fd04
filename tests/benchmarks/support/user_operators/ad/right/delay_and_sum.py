import torch


class _DAS(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rf, delay, apod):
        T = rf.shape[1]
        i0 = torch.floor(delay).long()
        frac = delay - i0
        ok = (i0 >= 0) & (i0 < T - 1)
        j = i0.clamp(0, T - 2)
        lo = torch.gather(rf, 1, j)
        hi = torch.gather(rf, 1, j + 1)
        val = torch.where(ok, lo + frac * (hi - lo), torch.zeros_like(lo))
        ctx.save_for_backward(j, frac, ok, lo, hi, val, apod)
        ctx.T = T
        return (apod[:, None] * val).sum(0)

    @staticmethod
    def backward(ctx, g):
        j, frac, ok, lo, hi, val, apod = ctx.saved_tensors
        gv = apod[:, None] * g * ok
        g_rf = torch.zeros(j.shape[0], ctx.T, dtype=g.dtype, device=g.device)
        g_rf.scatter_add_(1, j, gv * (1 - frac))
        g_rf.scatter_add_(1, j + 1, gv * frac)
        g_delay = gv * (hi - lo)
        g_apod = (val * g).sum(1)
        return g_rf, g_delay, g_apod


def delay_and_sum(rf, delay, apod=None):
    """Beamform RF lines.

    rf    : channels x samples
    delay : channels x pixels, in samples, fractional; taps outside the record count as zero
    apod  : channels, receive apodization (default boxcar)
    """
    if apod is None:
        apod = rf.new_ones(rf.shape[0])
    return _DAS.apply(rf, delay, apod)

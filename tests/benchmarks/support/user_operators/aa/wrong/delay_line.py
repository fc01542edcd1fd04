import torch
from torch.autograd.function import once_differentiable


class VariableDelay(torch.autograd.Function):
    """Fractional delay by linear interpolation, used for chorus / Doppler effects.

    x: B x T, delay: B x T in samples. Reads outside the signal return zero.
    """

    @staticmethod
    def _taps(delay):
        T = delay.shape[1]
        pos = torch.arange(T, device=delay.device, dtype=delay.dtype) - delay
        lo = pos.floor()
        frac = pos - lo
        lo = lo.long()
        return lo, frac, (lo >= 0) & (lo < T), (lo + 1 >= 0) & (lo + 1 < T)

    @staticmethod
    def forward(ctx, x, delay):
        T = x.shape[1]
        lo, frac, in0, in1 = VariableDelay._taps(delay)
        a = x.gather(1, lo.clamp(0, T - 1)) * in0
        b = x.gather(1, (lo + 1).clamp(0, T - 1)) * in1
        ctx.save_for_backward(x, delay)
        return a + frac * (b - a)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, delay = ctx.saved_tensors
        B, T = x.shape
        lo, frac, in0, in1 = VariableDelay._taps(delay)
        i0, i1 = lo.clamp(0, T - 1), (lo + 1).clamp(0, T - 1)
        gd = -g * (x.gather(1, i1) * in1 - x.gather(1, i0) * in0)
        row = torch.arange(B, device=x.device).unsqueeze(1) * T
        gx = torch.zeros_like(x)
        gx.reshape(-1).index_add_(0, (row + i0).reshape(-1), (g * (1 - frac) * in0).reshape(-1))
        gx.reshape(-1).index_add_(0, (row + i1).reshape(-1), (g * frac * in1).reshape(-1))
        return gx, gd

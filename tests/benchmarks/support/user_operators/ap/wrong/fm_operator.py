import math

import torch


def _phase(f, sr):
    return torch.cumsum(f, -1) * (2 * math.pi / sr)


def _revcum(g):
    return g.flip(-1).cumsum(-1).flip(-1)


class FMOperator(torch.autograd.Function):
    """Two-operator FM voice.

    Parameters
    ----------
    f_car, f_mod : (..., T) instantaneous frequencies in Hz
    index, amp : (..., T)
    sr : float, sampling rate
    """

    @staticmethod
    def forward(ctx, f_car, f_mod, index, amp, sr):
        ctx.save_for_backward(f_car, f_mod, index, amp)
        ctx.sr = sr
        return amp * torch.sin(_phase(f_car, sr) + index * torch.sin(_phase(f_mod, sr)))

    @staticmethod
    def backward(ctx, g):
        f_car, f_mod, index, amp = ctx.saved_tensors
        k = 2 * math.pi / ctx.sr
        pm = _phase(f_mod, ctx.sr)
        arg = _phase(f_car, ctx.sr) + index * pm.sin()
        ga = g * amp * arg.cos()
        return (k * _revcum(ga), k * torch.cumsum(ga * index * pm.cos(), -1), ga * pm.sin(), g * arg.sin(), None)

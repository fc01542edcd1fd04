import math

import torch
from torch.autograd import Function


class _Coupling(Function):
    @staticmethod
    def eta(w1, w2, offset, tilt, wave):
        s = w1**2 + w2**2
        q = (math.pi / wave) ** 2
        return s, q, (2 * w1 * w2 / s) ** 2 * torch.exp(-2 * (offset**2 + q * (tilt * w1 * w2) ** 2) / s)

    @staticmethod
    def forward(ctx, w1, w2, offset, tilt, wave):
        ctx.save_for_backward(w1, w2, offset, tilt)
        ctx.wave = wave
        return _Coupling.eta(w1, w2, offset, tilt, wave)[2]

    @staticmethod
    def backward(ctx, g):
        w1, w2, offset, tilt = ctx.saved_tensors
        s, q, eta = _Coupling.eta(w1, w2, offset, tilt, ctx.wave)
        ge = g * eta
        both = 4 * (offset**2 / s - 1) / s
        qt = 4 * q * tilt**2 / s**2
        g1 = ge * (2 / w1 + both * w1 - qt * w1 * w2**4)
        g2 = ge * (2 / w2 + both * w2 - qt * w2 * w1**4)
        go = -4 * ge * offset / s
        gt = -4 * ge * q * tilt * (w1 * w2) ** 2 / s
        return (g1.sum_to_size(w1.shape), g2.sum_to_size(w2.shape), go.sum_to_size(offset.shape),
                gt.sum_to_size(tilt.shape), None)


def mode_coupling(w1, w2, offset, tilt, wave=1.55):
    """Power coupling of two Gaussian modes: waists w1, w2 [um], lateral offset [um], tilt [rad]; broadcasting."""
    return _Coupling.apply(w1, w2, offset, tilt, wave)

import math

import torch

# six-peak fat at 3 T: chemical shift [Hz], relative amplitude
FAT_HZ = (-485.0, -434.0, -332.0, -248.0, -50.0, 77.0)
FAT_AMP = (0.087, 0.693, 0.128, 0.004, 0.039, 0.048)


class DixonSignal(torch.autograd.Function):
    """water, fat (V,) complex, field (V,) [Hz], r2s (V,) [1/s], te (E,) [s] (protocol, no gradient) -> (V, E) complex"""

    @staticmethod
    def _model(te, field, r2s, dtype):
        fat = sum(a * torch.exp(2j * math.pi * f * te.to(dtype)) for f, a in zip(FAT_HZ, FAT_AMP))
        phasor = torch.exp((2j * math.pi * field - r2s)[:, None] * te)
        return fat, phasor

    @staticmethod
    def forward(ctx, water, fat, field, r2s, te):
        ctx.save_for_backward(water, fat, field, r2s, te)
        c, phasor = DixonSignal._model(te, field, r2s, water.dtype)
        return (water[:, None] + fat[:, None] * c) * phasor

    @staticmethod
    def backward(ctx, g):
        water, fat, field, r2s, te = ctx.saved_tensors
        c, phasor = DixonSignal._model(te, field, r2s, water.dtype)
        back = g * phasor.conj()
        inner = (g.conj() * (water[:, None] + fat[:, None] * c) * phasor * te).sum(1)
        return back.sum(1), (back * c).sum(1), -2 * math.pi * inner.imag, -inner.real, None

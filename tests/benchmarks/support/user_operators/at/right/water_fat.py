import math

import torch


class WaterFatSignal(torch.autograd.Function):
    """Multi-echo water-fat signal (W + F * sum_p amp_p exp(2 pi i freq_p t)) exp((2 pi i psi - r2s) t)

    water, fat: complex (V,); psi, r2s: real (V,); te: (E,); amps, freqs: (P,), constants -> (V, E)
    """

    @staticmethod
    def terms(psi, r2s, te, amps, freqs):
        phase = 2 * math.pi * te[:, None] * freqs
        fat_phasor = torch.complex((amps * phase.cos()).sum(1), (amps * phase.sin()).sum(1))
        decay = torch.exp(torch.complex(-r2s[:, None] * te, 2 * math.pi * psi[:, None] * te))
        return fat_phasor, decay

    @staticmethod
    def forward(ctx, water, fat, psi, r2s, te, amps, freqs):
        ctx.save_for_backward(water, fat, psi, r2s, te, amps, freqs)
        fat_phasor, decay = WaterFatSignal.terms(psi, r2s, te, amps, freqs)
        return (water[:, None] + fat[:, None] * fat_phasor) * decay

    @staticmethod
    def backward(ctx, grad):
        water, fat, psi, r2s, te, amps, freqs = ctx.saved_tensors
        fat_phasor, decay = WaterFatSignal.terms(psi, r2s, te, amps, freqs)
        signal = (water[:, None] + fat[:, None] * fat_phasor) * decay
        g = grad * decay.conj()
        g_water = g.sum(1)
        g_fat = (g * fat_phasor.conj()).sum(1)
        inner = grad.conj() * signal * te
        g_psi = -2 * math.pi * inner.imag.sum(1)
        g_r2s = -inner.real.sum(1)
        return g_water, g_fat, g_psi, g_r2s, None, None, None

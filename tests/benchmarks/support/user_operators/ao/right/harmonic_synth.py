import math
import torch


class HarmonicSynth(torch.autograd.Function):
    """Additive synthesis as in DDSP.

    f0 (B, T) in Hz, amps (B, H, T), sample rate -> audio (B, T). Harmonics above Nyquist are silent.
    """

    @staticmethod
    def forward(ctx, f0, amps, sr):
        ctx.save_for_backward(f0, amps)
        ctx.sr = sr
        a, phase, _ = _oscillators(f0, amps, sr)
        return (a * phase.sin()).sum(1)

    @staticmethod
    def backward(ctx, g):
        f0, amps = ctx.saved_tensors
        a, phase, audible = _oscillators(f0, amps, ctx.sr)
        h = torch.arange(1, amps.shape[1] + 1, dtype=f0.dtype).view(1, -1, 1)
        g_amps = g.unsqueeze(1) * phase.sin() * audible
        g_phase = (g.unsqueeze(1) * a * phase.cos() * h).sum(1)
        g_f0 = g_phase.flip(-1).cumsum(-1).flip(-1) * (2 * math.pi / ctx.sr)
        return g_f0, g_amps, None


def _oscillators(f0, amps, sr):
    h = torch.arange(1, amps.shape[1] + 1, dtype=f0.dtype).view(1, -1, 1)
    audible = (f0.unsqueeze(1) * h < sr / 2).to(f0.dtype)
    phase = 2 * math.pi / sr * f0.cumsum(-1).unsqueeze(1) * h
    return amps * audible, phase, audible

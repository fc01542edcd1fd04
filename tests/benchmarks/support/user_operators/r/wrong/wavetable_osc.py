import torch
import torch.nn as nn


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, phase):
        n = table.shape[0]
        pos = torch.remainder(phase, 1.0) * n
        i = pos.floor().long().clamp(max=n - 1)
        frac = pos - i
        j = (i + 1) % n
        ctx.save_for_backward(table, frac, i, j)
        return table[i] * (1 - frac) + table[j] * frac

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        table, frac, i, j = ctx.saved_tensors
        gt = torch.zeros_like(table)
        gt.index_add_(0, i.reshape(-1), (g * (1 - frac)).reshape(-1))
        gt[j] += g * frac
        gp = g * (table[j] - table[i]) * table.shape[0]
        return gt, gp


class WavetableOscillator(nn.Module):
    """One cycle of a waveform, learned, read by frequencies (B, T) in Hz.

    Args:
        table_size: samples per cycle
        sample_rate: Hz
    Returns the signal (B, T) and the phase (B,) in cycles at which the next block starts.
    """

    def __init__(self, table_size: int = 512, sample_rate: float = 16000.0):
        super().__init__()
        self.table = nn.Parameter(torch.sin(torch.linspace(0, 6.2831853, table_size + 1)[:-1]))
        self.sample_rate = sample_rate

    def forward(self, freq, phase=None):
        if phase is None:
            phase = freq.new_zeros(freq.shape[0])
        steps = phase[:, None] + torch.cumsum(freq / self.sample_rate, 1)
        return _Lookup.apply(self.table, steps), steps[:, -1] % 1.0

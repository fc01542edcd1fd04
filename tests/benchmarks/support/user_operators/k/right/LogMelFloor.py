from dataclasses import dataclass

import torch
from torch import nn
from torch.autograd import Function


@dataclass
class MelConfig:
    n_freq: int = 9
    n_mels: int = 4
    floor: float = 1e-5


def triangular_bank(n_freq: int, n_mels: int) -> torch.Tensor:
    """(n_mels, n_freq) triangles, evenly spaced."""
    grid = torch.linspace(0.0, 1.0, n_freq)
    edges = torch.linspace(0.0, 1.0, n_mels + 2)
    up = (grid[None, :] - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - grid[None, :]) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(up, down).clamp(min=0)


class _LogFloor(Function):
    @staticmethod
    def forward(ctx, power, bank, floor):
        mel = bank @ power
        ctx.floor = floor
        ctx.save_for_backward(power, bank)
        return mel.clamp(min=floor).log()

    @staticmethod
    def backward(ctx, grad):
        power, bank = ctx.saved_tensors
        mel = bank @ power
        keep = mel > ctx.floor
        g_mel = torch.where(keep, grad / mel.clamp(min=ctx.floor), torch.zeros_like(grad))
        return bank.t() @ g_mel, None, None


class LogMelFloor(nn.Module):
    """Log mel energies; energies under `floor` are clamped to it.

    Input: power spectrogram (..., n_freq, frames), output (..., n_mels, frames).
    The filter bank is a fixed buffer.
    """

    def __init__(self, cfg: MelConfig = MelConfig()):
        super().__init__()
        self.floor = cfg.floor
        self.register_buffer("bank", triangular_bank(cfg.n_freq, cfg.n_mels))

    def forward(self, power: torch.Tensor) -> torch.Tensor:
        return _LogFloor.apply(power, self.bank, self.floor)

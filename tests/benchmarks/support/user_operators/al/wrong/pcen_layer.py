import torch
from torch import nn
from torch.autograd.function import once_differentiable

EPS = 1e-6


def _smooth(x, s):
    out = [x[..., 0]]
    for t in range(1, x.shape[-1]):
        out.append((1 - s) * out[-1] + s * x[..., t])
    return torch.stack(out, -1)


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, energy, alpha, delta, root, s):
        level = EPS + _smooth(energy, s)
        gain = level ** -alpha[:, None]
        ctx.s = s
        ctx.save_for_backward(energy, alpha, delta, root, level, gain)
        return (energy * gain + delta[:, None]) ** root[:, None] - (delta**root)[:, None]

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        energy, alpha, delta, root, level, gain = ctx.saved_tensors
        s = ctx.s
        r, d = root[:, None], delta[:, None]
        lifted = energy * gain + d
        g_lift = grad * r * lifted ** (r - 1)
        g_root = (grad * (lifted**r * lifted.log() - d**r * d.log())).sum((0, 2))
        g_delta = g_lift.sum((0, 2))
        g_log_gain = g_lift * energy * gain
        g_alpha = -(g_log_gain * level.log()).sum((0, 2))
        g_level = -g_log_gain * alpha[:, None] / level
        g_energy = g_lift * gain
        carry = torch.zeros_like(g_level[..., 0])
        for t in range(energy.shape[-1] - 1, 0, -1):
            carry = g_level[..., t] + (1 - s) * carry
            g_energy[..., t] += s * carry
        g_energy[..., 0] += g_level[..., 0] + (1 - s) * carry
        return g_energy, g_alpha, g_delta, g_root, None


class PCEN(nn.Module):
    """Trainable per-channel energy normalisation, (B, F, T) non-negative energies in and out."""

    def __init__(self, n_bands, alpha=0.98, delta=2.0, root=0.5, smooth=0.025):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((n_bands,), alpha).log())
        self.log_delta = nn.Parameter(torch.full((n_bands,), delta).log())
        self.log_root = nn.Parameter(torch.full((n_bands,), root).log())
        self.smooth = smooth

    def forward(self, energy):
        return _PCEN.apply(energy, self.log_alpha.exp(), self.log_delta.exp(), self.log_root.exp(), self.smooth)

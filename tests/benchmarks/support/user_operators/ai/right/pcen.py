import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, e, m, alpha, delta, root, eps):
        gain = (m + eps) ** -alpha
        u = e * gain + delta
        ctx.save_for_backward(e, m, gain, u, alpha, delta, root)
        ctx.eps = eps
        return u ** root - delta ** root

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        e, m, gain, u, alpha, delta, root = ctx.saved_tensors
        g_u = g * root * u ** (root - 1)
        g_e = g_u * gain
        g_gain = g_u * e
        base = m + ctx.eps
        g_m = -g_gain * alpha * gain / base
        g_alpha = (-g_gain * gain * base.log()).sum((0, 2), keepdim=True)
        g_delta = (g_u - g * root * delta ** (root - 1)).sum((0, 2), keepdim=True)
        g_root = (g * (u ** root * u.log() - delta ** root * delta.log())).sum((0, 2), keepdim=True)
        return g_e, g_m, g_alpha[0], g_delta[0], g_root[0], None


class PCEN(nn.Module):
    """Per-channel energy normalisation of (B, C, T) energies.

    Args:
        channels: number of bands.
        smooth: coefficient of the running mean.
        alpha, delta, root: initial values.
        trainable: whether the three are learned (in log scale).
    """

    def __init__(self, channels, smooth=0.025, alpha=0.98, delta=2.0, root=0.5, eps=1e-6, trainable=True):
        super().__init__()
        self.smooth, self.eps = smooth, eps
        for name, value in (("alpha", alpha), ("delta", delta), ("root", root)):
            p = torch.full((channels, 1), float(value)).log()
            if trainable:
                self.register_parameter("log_" + name, nn.Parameter(p))
            else:
                self.register_buffer("log_" + name, p)

    def forward(self, energy, state=None):
        means = []
        m = energy[..., 0] if state is None else state
        for t in range(energy.size(-1)):
            m = (1 - self.smooth) * m + self.smooth * energy[..., t]
            means.append(m)
        return _PCEN.apply(energy, torch.stack(means, -1), self.log_alpha.exp(), self.log_delta.exp(), self.log_root.exp(), self.eps)

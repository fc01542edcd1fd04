import torch
from torch import nn

G = 9.81


class _Gerstner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xz, amp, k, heading, steep, time):
        ctx.save_for_backward(xz, amp, k, heading)
        ctx.steep, ctx.time = steep, time
        d = torch.stack([torch.cos(heading), torch.sin(heading)])
        phase = k * (xz @ d) - torch.sqrt(G * k) * time
        flat = (steep * amp * torch.cos(phase)) @ d.T
        up = (amp * torch.sin(phase)).sum(-1)
        return torch.stack([flat[..., 0], up, flat[..., 1]], -1)

    @staticmethod
    def backward(ctx, g):
        xz, amp, k, heading = ctx.saved_tensors
        q, time = ctx.steep, ctx.time
        d = torch.stack([torch.cos(heading), torch.sin(heading)])
        turn = torch.stack([-torch.sin(heading), torch.cos(heading)])
        along = xz @ d
        omega = torch.sqrt(G * k)
        phase = k * along - omega * time
        c, s = torch.cos(phase), torch.sin(phase)
        flat, up = torch.stack([g[..., 0], g[..., 2]], -1), g[..., 1:2]
        pull = flat @ d
        g_amp = q * c * pull + s * up
        g_phase = amp * (c * up - q * s * pull)
        g_head = q * amp * c * (flat @ turn) + g_phase * k * (xz @ turn)
        g_k = g_phase * along
        rows = tuple(range(xz.dim() - 1))
        return (g_phase * k) @ d.T, g_amp.sum(rows), g_k.sum(rows), g_head.sum(rows), None, None


class GerstnerWaves(nn.Module):
    """Ocean surface displacement (..., 3) at rest positions xz (..., 2) and a time [s], deep-water dispersion."""

    def __init__(self, waves, steep=0.6):
        super().__init__()
        self.amp = nn.Parameter(torch.linspace(0.3, 0.6, waves))
        self.k = nn.Parameter(torch.linspace(0.5, 1.5, waves))
        self.heading = nn.Parameter(torch.linspace(-1.0, 0.7, waves))
        self.steep = steep

    def forward(self, xz, time=0.0):
        return _Gerstner.apply(xz, self.amp, self.k, self.heading, self.steep, time)

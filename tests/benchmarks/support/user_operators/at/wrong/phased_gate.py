import torch
import torch.nn as nn


class _TimeGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, tau, s, r, alpha):
        phi = torch.remainder(t - s, tau) / tau
        ctx.save_for_backward(t, tau, s, r)
        ctx.alpha = alpha
        return torch.where(phi < r / 2, 2 * phi / r, torch.where(phi < r, 2 - 2 * phi / r, alpha * phi))

    @staticmethod
    def backward(ctx, *grads):
        g, = grads
        t, tau, s, r = ctx.saved_tensors
        phi = torch.remainder(t - s, tau) / tau
        up, down = phi < r / 2, (phi >= r / 2) & (phi < r)
        two_r = (2 / r).expand_as(phi)
        d_phi = torch.where(up, two_r, torch.where(down, -two_r, torch.full_like(phi, ctx.alpha)))
        d_r = 2 * phi / r ** 2 * (down.to(g.dtype) - up.to(g.dtype))
        gp = g * d_phi / tau
        gt = gp.sum(-1, keepdim=True)
        gtau = (-gp * phi).flatten(0, -2).sum(0)
        return gt, gtau, -gp.flatten(0, -2).sum(0), (g * d_r).flatten(0, -2).sum(0), None


class PhasedGate(nn.Module):
    """Time gate of the Phased LSTM: timestamps (batch, 1) -> (batch, hidden)"""

    def __init__(self, hidden, alpha=1e-3, tau_max=3.0, ratio=0.3):
        super().__init__()
        self.alpha = alpha
        self.tau = nn.Parameter(torch.exp(torch.rand(hidden) * tau_max))
        self.s = nn.Parameter(torch.rand(hidden))
        self.ratio = nn.Parameter(torch.full((hidden,), ratio))

    def forward(self, t):
        return _TimeGate.apply(t, self.tau, self.s, self.ratio, self.alpha)

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _PCEN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, E, alpha, delta, r, s, eps):
        M = torch.empty_like(E)
        M[..., 0] = E[..., 0]
        for t in range(1, E.shape[-1]):
            M[..., t] = (1 - s) * M[..., t - 1] + s * E[..., t]
        al, de, rr = alpha[:, None], delta[:, None], r[:, None]
        ctx.save_for_backward(E, M, alpha, delta, r)
        ctx.s, ctx.eps = s, eps
        return (E * (eps + M) ** -al + de) ** rr - de ** rr

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        E, M, alpha, delta, r = ctx.saved_tensors
        s, Me = ctx.s, ctx.eps + M
        al, de, rr = alpha[:, None], delta[:, None], r[:, None]
        gain = Me ** -al
        base = E * gain + de
        d_base = g * rr * base ** (rr - 1)
        d_r = g * (base ** rr * base.log() - de ** rr * de.log())
        d_delta = d_base - g * rr * de ** (rr - 1)
        d_alpha = -d_base * E * gain * Me.log()
        d_E = d_base * gain
        d_M = -d_base * E * gain * al / Me
        lam = torch.zeros_like(E[..., 0])
        for t in range(E.shape[-1] - 1, 0, -1):
            lam = d_M[..., t] + lam
            d_E[..., t] += s * lam
            lam = (1 - s) * lam
        d_E[..., 0] += d_M[..., 0] + lam
        return d_E, d_alpha.sum((0, 2)), d_delta.sum((0, 2)), d_r.sum((0, 2)), None, None


class PCEN(nn.Module):
    """Per-channel energy normalisation of mel energies (B, C, T)."""

    def __init__(self, channels, s=0.04, eps=1e-6):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((channels,), 0.98))
        self.delta = nn.Parameter(torch.full((channels,), 2.0))
        self.r = nn.Parameter(torch.full((channels,), 0.5))
        self.s, self.eps = s, eps

    def forward(self, E):
        return _PCEN.apply(E, self.alpha, self.delta, self.r, self.s, self.eps)

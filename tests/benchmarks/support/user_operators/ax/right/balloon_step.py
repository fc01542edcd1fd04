import math

import torch
from torch import nn


class _BalloonStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, state, z, kappa, gamma, tau, alpha, dt, e0):
        ctx.save_for_backward(state, z, kappa, gamma, tau, alpha)
        ctx.dt, ctx.e0 = dt, e0
        s, f, v, q = state.unbind(-1)
        out = v ** (1 / alpha)
        ext = 1 - (1 - e0) ** (1 / f)
        rate = torch.stack([z - kappa * s - gamma * (f - 1), s, (f - out) / tau, (f * ext / e0 - out * q / v) / tau], -1)
        return state + dt * rate

    @staticmethod
    def backward(ctx, grad):
        state, z, kappa, gamma, tau, alpha = ctx.saved_tensors
        e0 = ctx.e0
        s, f, v, q = state.unbind(-1)
        out = v ** (1 / alpha)
        rest = (1 - e0) ** (1 / f)
        hs, hf, hv, hq = (ctx.dt * grad).unbind(-1)
        hv, hq = hv / tau, hq / tau
        g_s = hf - kappa * hs
        g_f = hv - gamma * hs + hq * (1 - rest + rest * math.log(1 - e0) / f) / e0
        g_v = -hv * out / (alpha * v) - hq * q * (1 / alpha - 1) * out / v**2
        g_q = -hq * out / v
        g_alpha = ((hv + hq * q / v) * out * v.log()).sum() / alpha**2
        g_tau = -(hv * (f - out) + hq * (f * (1 - rest) / e0 - out * q / v)).sum() / tau
        g_state = grad + torch.stack([g_s, g_f, g_v, g_q], -1)
        return g_state, hs, -(hs * s).sum(), -(hs * (f - 1)).sum(), g_tau, g_alpha, None, None


class BalloonStep(nn.Module):
    """Euler step of the balloon-Windkessel model.

    :param dt: step in seconds
    :param e0: resting oxygen extraction, in (0, 1)

    ``state`` is (..., 4) with signal, inflow, volume, deoxyhaemoglobin (the last three positive);
    ``z`` (...) is the neural drive.
    """

    def __init__(self, dt=0.1, e0=0.4):
        super().__init__()
        self.dt, self.e0 = dt, e0
        self.kappa = nn.Parameter(torch.tensor(0.65))
        self.gamma = nn.Parameter(torch.tensor(0.41))
        self.tau = nn.Parameter(torch.tensor(0.98))
        self.alpha = nn.Parameter(torch.tensor(0.32))

    def forward(self, state, z):
        return _BalloonStep.apply(state, z, self.kappa, self.gamma, self.tau, self.alpha, self.dt, self.e0)

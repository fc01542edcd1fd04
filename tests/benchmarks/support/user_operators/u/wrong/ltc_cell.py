import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _FusedSolver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate, A, w_tau, dt, unfolds):
        h = dt / unfolds
        den = 1 + h * (w_tau + gate)
        states = []
        for _ in range(unfolds):
            x = (x + h * gate * A) / den
            states.append(x)
        ctx.save_for_backward(gate, A, w_tau, *states)
        ctx.h = h
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, gx):
        gate, A, w_tau, *states = ctx.saved_tensors
        h = ctx.h
        den = 1 + h * (w_tau + gate)
        g_gate = torch.zeros_like(gate)
        g_A = torch.zeros_like(A)
        g_tau = torch.zeros_like(w_tau)
        for s in states:
            gx = gx / den
            g_A += (gx * h * gate).sum(0)
            g_den = -gx * s
            g_gate += gx * h * A + h * g_den
            g_tau += h * g_den.sum(0)
        return gx, g_gate, g_A, g_tau, None, None


class LTCCell(nn.Module):
    """Liquid time-constant cell, semi-implicit Euler with a fixed number of unfolds."""

    def __init__(self, n_in, n_hidden, dt=1.0, unfolds=6):
        super().__init__()
        self.inp = nn.Linear(n_in, n_hidden)
        self.rec = nn.Linear(n_hidden, n_hidden, bias=False)
        self.A = nn.Parameter(torch.ones(n_hidden))
        self.w_tau = nn.Parameter(torch.ones(n_hidden))
        self.dt, self.unfolds = dt, unfolds

    def forward(self, u, x):
        gate = torch.sigmoid(self.inp(u) + self.rec(x))
        return _FusedSolver.apply(x, gate, self.A, self.w_tau, self.dt, self.unfolds)

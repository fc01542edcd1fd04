import torch
import torch.nn as nn


class PronyFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, g, log_tau, g_inf):
        ctx.save_for_backward(t, g, log_tau)
        return g_inf + torch.exp(-t[..., None] / log_tau.exp()) @ g

    @staticmethod
    def backward(ctx, grad):
        t, g, log_tau = ctx.saved_tensors
        x = t[..., None] / log_tau.exp()
        e = torch.exp(-x)
        ge = grad[..., None] * e
        red = tuple(range(t.dim()))
        dg = ge.sum(red)
        dlog = (ge * x).sum(red) * g
        dt = -(ge * g / log_tau.exp()).sum(-1)
        return dt, dg, dlog, grad.sum()


class Prony(nn.Module):
    """Relaxation modulus of a generalised Maxwell solid at times t (any shape)."""

    def __init__(self, branches):
        super().__init__()
        self.g = nn.Parameter(torch.ones(branches) / branches)
        self.log_tau = nn.Parameter(torch.linspace(-2, 2, branches))
        self.g_inf = nn.Parameter(torch.tensor(0.1))

    def forward(self, t):
        return PronyFn.apply(t, self.g, self.log_tau, self.g_inf)

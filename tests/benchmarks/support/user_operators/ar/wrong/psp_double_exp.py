import torch
from torch import nn
from torch.autograd.function import once_differentiable


def _filter(x, decay):
    out, state = [], torch.zeros_like(x[0])
    for x_t in x:
        state = decay * state + x_t
        out.append(state)
    return torch.stack(out)


def _filter_backward(grad, trace, decay):
    adj = torch.zeros_like(grad)
    run = torch.zeros_like(grad[0])
    for t in range(len(grad) - 1, -1, -1):
        run = grad[t] + decay * run
        adj[t] = run
    d_decay = (adj * trace).sum((0, 1))
    return adj, d_decay


class DoubleExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, spikes, log_tau_m, log_tau_s):
        a, b = torch.exp(-torch.exp(-log_tau_m)), torch.exp(-torch.exp(-log_tau_s))
        m, s = _filter(spikes, a), _filter(spikes, b)
        ctx.save_for_backward(log_tau_m, log_tau_s, a, b, m, s)
        return m - s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        log_tau_m, log_tau_s, a, b, m, s = ctx.saved_tensors
        gm, ga = _filter_backward(grad, m, a)
        gs, gb = _filter_backward(grad, s, b)
        return gm - gs, ga * a * torch.exp(-log_tau_m), -gb * b * torch.exp(-log_tau_s)


class PSPFilter(nn.Module):
    """Post-synaptic potential, difference of two exponentials with trainable time constants.
    spikes (T, B, N) -> (T, B, N)"""

    def __init__(self, n, tau_m=8.0, tau_s=2.0):
        super().__init__()
        self.log_tau_m = nn.Parameter(torch.full((n,), tau_m).log())
        self.log_tau_s = nn.Parameter(torch.full((n,), tau_s).log())

    def forward(self, spikes):
        return DoubleExp.apply(spikes, self.log_tau_m, self.log_tau_s)

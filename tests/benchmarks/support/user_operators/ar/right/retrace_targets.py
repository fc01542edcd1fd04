import torch
from torch.autograd.function import once_differentiable


class Retrace(torch.autograd.Function):
    """Retrace(lambda) targets, time first.

    q (T,B)          Q(s_t, a_t)
    v_next (T,B)     E_pi Q(s_{t+1}, .)
    rewards, discounts (T,B)
    log_rhos (T,B)   log pi/mu of a_t, the trace is lam * min(1, rho)
    """

    @staticmethod
    def forward(ctx, q, v_next, rewards, discounts, log_rhos, lam=0.95):
        c = lam * torch.exp(log_rhos.clamp(max=0))
        delta = rewards + discounts * v_next - q
        acc = torch.empty_like(delta)
        last = torch.zeros_like(delta[0])
        for t in reversed(range(len(q))):
            if t + 1 < len(q):
                last = delta[t] + discounts[t] * c[t + 1] * last
            else:
                last = delta[t]
            acc[t] = last
        ctx.save_for_backward(v_next, discounts, log_rhos, c, acc)
        return q + acc

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        v_next, discounts, log_rhos, c, acc = ctx.saved_tensors
        adj = torch.empty_like(acc)
        d_disc = torch.empty_like(acc)
        d_rho = torch.zeros_like(acc)
        for t in range(len(acc)):
            adj[t] = grad[t]
            if t > 0:
                adj[t] += discounts[t - 1] * c[t] * adj[t - 1]
                d_rho[t] = adj[t - 1] * discounts[t - 1] * acc[t] * c[t]
            d_disc[t] = adj[t] * v_next[t]
            if t + 1 < len(acc):
                d_disc[t] += adj[t] * c[t + 1] * acc[t + 1]
        d_rho = d_rho * (log_rhos < 0)
        return grad - adj, discounts * adj, adj, d_disc, d_rho, None

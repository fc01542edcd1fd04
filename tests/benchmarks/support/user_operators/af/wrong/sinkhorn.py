import torch
from torch.autograd.function import once_differentiable


class _Sinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, cost, log_a, log_b, eps, n_iters):
        g = torch.zeros_like(log_b)
        fs, gs = [], [g]
        for _ in range(n_iters):
            f = eps * (log_a - torch.logsumexp((g[None, :] - cost) / eps, 1))
            g = eps * (log_b - torch.logsumexp((f[:, None] - cost) / eps, 0))
            fs.append(f)
            gs.append(g)
        plan = torch.exp((f[:, None] + g[None, :] - cost) / eps)
        ctx.save_for_backward(cost, plan, torch.stack(fs), torch.stack(gs))
        ctx.eps = eps
        return (plan * cost).sum(), plan

    @staticmethod
    @once_differentiable
    def backward(ctx, g_value, g_plan):
        cost, plan, fs, gs = ctx.saved_tensors
        eps = ctx.eps
        g_cost = g_value * plan
        s = (g_plan + g_value * cost) * plan / eps
        g_cost = g_cost - s
        df, dg = s.sum(1), s.sum(0)
        d_log_a = torch.zeros_like(fs[0])
        d_log_b = torch.zeros_like(gs[0])
        for t in range(fs.shape[0] - 1, -1, -1):
            col = torch.softmax((fs[t][:, None] - cost) / eps, 0)
            d_log_b += eps * dg
            df = df - col @ dg
            g_cost = g_cost + col * dg[None, :]
            row = torch.softmax((gs[-1][None, :] - cost) / eps, 1)
            d_log_a += eps * df
            dg = -(df @ row)
            g_cost = g_cost + row * df[:, None]
            df = torch.zeros_like(df)
        return g_cost, d_log_a, d_log_b, None, None


def sinkhorn(cost, a, b, eps=0.1, n_iters=20, return_plan=False):
    """Entropic transport between weights a (n,) and b (m,) with a fixed number of iterations"""
    value, plan = _Sinkhorn.apply(cost, a.log(), b.log(), eps, n_iters)
    return (value, plan) if return_plan else value

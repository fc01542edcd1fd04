import torch


class _S(torch.autograd.Function):
    @staticmethod
    def forward(ctx, C, la, lb, eps, n):
        f, g = torch.zeros_like(la), torch.zeros_like(lb)
        fs, gs = [], [g]
        for _ in range(n):
            f = eps * (la - torch.logsumexp((g[..., None, :] - C) / eps, -1))
            g = eps * (lb - torch.logsumexp((f[..., :, None] - C) / eps, -2))
            fs.append(f)
            gs.append(g)
        P = torch.exp((f[..., :, None] + g[..., None, :] - C) / eps)
        ctx.save_for_backward(C, P, torch.stack(fs), torch.stack(gs))
        ctx.eps = eps
        return (P * C).sum((-2, -1))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, go):
        C, P, fs, gs = ctx.saved_tensors
        eps = ctx.eps
        G = go[..., None, None] * P * C / eps
        dC = go[..., None, None] * P - G
        df, dg = G.sum(-1), G.sum(-2)
        dla, dlb = torch.zeros_like(df), torch.zeros_like(dg)
        for k in range(len(fs) - 1, -1, -1):
            dlb = dlb + eps * dg
            S = torch.softmax((fs[k][..., :, None] - C) / eps, -2) * dg[..., None, :]
            dC = dC + S
            df = df - S.sum(-1)
            dla = dla + eps * df
            T = torch.softmax((gs[k][..., None, :] - C) / eps, -1) * df[..., :, None]
            dC = dC + T
            dg = -T.sum(-2)
        return dC, dla, dlb, None, None


def sinkhorn_cost(cost, a=None, b=None, epsilon=0.1, n_iters=20):
    """Transport cost after ``n_iters`` Sinkhorn iterations.

    ``cost`` is ``(..., n, m)``; ``a`` ``(..., n)`` and ``b`` ``(..., m)`` are positive and uniform by default.
    """
    n, m = cost.shape[-2:]
    if a is None:
        a = cost.new_full(cost.shape[:-1], 1.0 / n)
    if b is None:
        b = cost.new_full(cost.shape[:-2] + (m,), 1.0 / m)
    return _S.apply(cost, a.log(), b.log(), epsilon, n_iters)

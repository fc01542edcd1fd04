import torch
from torch.autograd.function import once_differentiable


class HoltWinters(torch.autograd.Function):
    """One-step forecasts of triple exponential smoothing, additive trend, multiplicative season.

    y (T,) > 0; alpha, beta, gamma in (0, 1); level and trend at the start; season (m,) > 0.
    """

    @staticmethod
    def forward(ctx, y, alpha, beta, gamma, level, trend, season):
        m = len(season)
        l, b, s = level, trend, [x for x in season]
        fc, tape = [], []
        for t in range(len(y)):
            st = s[t % m]
            base = l + b
            fc.append(base * st)
            nl = alpha * y[t] / st + (1 - alpha) * base
            nb = beta * (nl - l) + (1 - beta) * b
            ns = gamma * y[t] / nl + (1 - gamma) * st
            tape.append(torch.stack([l, b, st, nl]))
            l, b, s[t % m] = nl, nb, ns
        ctx.save_for_backward(y, alpha, beta, gamma, torch.stack(tape))
        ctx.m = m
        return torch.stack(fc)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        y, alpha, beta, gamma, tape = ctx.saved_tensors
        gy = torch.zeros_like(y)
        ga, gb, gc = torch.zeros_like(alpha), torch.zeros_like(beta), torch.zeros_like(gamma)
        dl, db = torch.zeros_like(alpha), torch.zeros_like(alpha)
        ds = y.new_zeros(ctx.m)
        for t in reversed(range(len(y))):
            l, b, st, nl = tape[t]
            base = l + b
            dns = ds[t % ctx.m].clone()
            gy[t] += dns * gamma / nl
            gc += dns * (y[t] / nl - st)
            dnl = dl + db * beta - dns * gamma * y[t] / nl ** 2
            gb += db * (nl - l - b)
            ga += dnl * (y[t] / st - base)
            gy[t] += dnl * alpha / st
            dst = dns * (1 - gamma) - dnl * alpha * y[t] / st ** 2
            dst = dst + g[t] * l
            dbase = dnl * (1 - alpha) + g[t] * st
            dl, db = dbase - db * beta, dbase + db * (1 - beta)
            ds[t % ctx.m] = dst
        return gy, ga, gb, gc, dl, db, ds

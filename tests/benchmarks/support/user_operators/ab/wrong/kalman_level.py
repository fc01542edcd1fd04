import math

import torch
from torch.autograd.function import once_differentiable


class LocalLevelLogLik(torch.autograd.Function):
    # local level model, state variance q, observation variance r, prior N(0, 1); seen (T,) marks the observed points
    @staticmethod
    def forward(ctx, y, seen, q, r):
        m, p = torch.zeros_like(q), torch.ones_like(q)
        ll = torch.zeros_like(q)
        rows = []
        for t in range(len(y)):
            p = p + q
            s = p + r
            v = y[t] - m
            rows.append(torch.stack([p, s, v]))
            if seen is None or seen[t]:
                ll = ll - 0.5 * (math.log(2 * math.pi) + s.log() + v * v / s)
                k = p / s
                m = m + k * v
                p = (1 - k) * p
        ctx.save_for_backward(seen, torch.stack(rows))
        return ll

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        seen, rows = ctx.saved_tensors
        T = len(rows)
        gy = rows.new_zeros(T)
        gq, gr = torch.zeros_like(g), torch.zeros_like(g)
        dm, dp = torch.zeros_like(g), torch.zeros_like(g)
        for t in range(T - 1, -1, -1):
            p, s, v = rows[t]
            if seen is None or seen[t]:
                k = p / s
                # p' = p - p^2 / s, m' = m + k v
                dk = dm * v
                ds = dp * k * k - dk * k / s - 0.5 * g * (1 / s - v * v / (s * s))
                dv = dm * k - g * v / s
                dp = dp * (1 - 2 * k) + dk / s + ds
                gr = gr + ds
                gy[t] = dv
                dm = dm - dv
            else:
                dm = dm * (1 - p / s)
            gq = gq + dp
        return gy, None, gq, gr

import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class HoltWintersFn(torch.autograd.Function):
    """Additive Holt-Winters smoothing.

    y (B, T), level (B,), trend (B,), season (B, m); alpha, beta, gamma scalars.
    Returns one step ahead forecasts (B, T) and the last level, trend and season.
    """

    @staticmethod
    def forward(ctx, y, level, trend, season, alpha, beta, gamma):
        T, m = y.shape[1], season.shape[1]
        l, b, s = level, trend, list(season.unbind(1))
        out, tape = [], []
        for t in range(T):
            st = s[t % m]
            out.append(l + b + st)
            ln = alpha * (y[:, t] - st) + (1 - alpha) * (l + b)
            bn = beta * (ln - l) + (1 - beta) * b
            sn = gamma * (y[:, t] - ln) + (1 - gamma) * st
            tape.append(torch.stack([l, b, st, ln]))
            l, b = ln, bn
            s[t % m] = sn
        ctx.save_for_backward(y, alpha, beta, gamma, *tape)
        ctx.m = m
        return torch.stack(out, 1), l.clone(), b.clone(), torch.stack(s, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx, gout, gl, gb, gseason):
        y, alpha, beta, gamma, *tape = ctx.saved_tensors
        gs = list(gseason.unbind(1))
        gy = torch.zeros_like(y)
        ga, gbeta, gg = 0, 0, 0
        for t in reversed(range(y.shape[1])):
            l, b, st, ln = tape[t]
            k = t % ctx.m
            # season
            gg = gg + (gs[k] * (y[:, t] - ln - st)).sum()
            gy[:, t] += gamma * gs[k]
            gln = gl + gamma * gs[k]
            gst = (1 - gamma) * gs[k]
            # trend
            gbeta = gbeta + (gb * (ln - l - b)).sum()
            gln = gln + beta * gb
            gl = -beta * gb
            gb = (1 - beta) * gb
            # level
            ga = ga + (gln * (y[:, t] - st - l - b)).sum()
            gy[:, t] += alpha * gln
            gst = gst - alpha * gln
            gl = gl + (1 - alpha) * gln
            gb = gb + (1 - alpha) * gln
            # forecast
            gl, gb, gs[k] = gl + gout[:, t], gb + gout[:, t], gst + gout[:, t]
        return gy, gl, gb, torch.stack(gs, 1), ga, gbeta, gg


class HoltWinters(nn.Module):
    def __init__(self, period, alpha=0.3, beta=0.1, gamma=0.2):
        super().__init__()
        self.period = period
        logits = torch.logit(torch.tensor([alpha, beta, gamma]))
        self.logits = nn.Parameter(logits)

    def initial_state(self, y):
        return y[:, 0], torch.zeros_like(y[:, 0]), y.new_zeros(y.shape[0], self.period)

    def forward(self, y, state=None):
        level, trend, season = self.initial_state(y) if state is None else state
        alpha, beta, gamma = torch.sigmoid(self.logits).unbind()
        return HoltWintersFn.apply(y, level, trend, season, alpha, beta, gamma)

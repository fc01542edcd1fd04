"""Filters and features for forecasting models."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ExpSmooth(Function):
    """Simple exponential smoothing of x (B, T); init (B,) defaults to the first value."""

    @staticmethod
    def forward(ctx, x, alpha, init=None):
        s = x[:, 0] if init is None else init
        out = []
        for t in range(x.shape[1]):
            s = alpha * x[:, t] + (1 - alpha) * s
            out.append(s)
        y = torch.stack(out, dim=1)
        ctx.save_for_backward(x, alpha, init, y)
        return y

    @staticmethod
    def backward(ctx, gy):
        x, alpha, init, y = ctx.saved_tensors
        carry, lam = torch.zeros_like(gy[:, 0]), []
        for t in reversed(range(gy.shape[1])):
            lam.append(gy[:, t] + carry)
            carry = (1 - alpha) * lam[-1]
        lam = torch.stack(lam[::-1], dim=1)
        start = x[:, 0] if init is None else init
        prev = torch.cat([start.unsqueeze(1), y[:, :-1]], dim=1)
        g_alpha = (lam * (x - prev)).sum()
        gx = alpha * lam
        if init is None:
            gx = torch.cat([gx[:, :1] + carry.unsqueeze(1), gx[:, 1:]], dim=1)
            return gx, g_alpha, None
        return gx, g_alpha, None


class CausalMovingAverage(Function):
    """Mean of the last `window` values; the first ones average what there is."""

    @staticmethod
    def forward(ctx, x, window=3):
        if window < 1:
            raise ValueError("window must be positive")
        T = x.shape[-1]
        total = F.pad(x.cumsum(-1), (1, 0))
        end = torch.arange(1, T + 1, device=x.device)
        count = end.clamp(max=window)
        ctx.window = window
        return (total[..., end] - total[..., end - count]) / count

    @staticmethod
    def backward(ctx, g):
        T, w = g.shape[-1], ctx.window
        count = torch.arange(1, T + 1, device=g.device).clamp(max=w)
        share = g / count[-1]
        tail = share.flip(-1).cumsum(-1).flip(-1)
        return tail - F.pad(tail[..., w:], (0, min(w, T))), None


class SeasonalDiff(Function):
    """x[t] - x[t - period] over the last axis."""

    @staticmethod
    def forward(ctx, x, period: int = 1):
        if not 0 < period < x.shape[-1]:
            raise ValueError(f"period {period} does not fit a series of {x.shape[-1]}")
        ctx.period = period
        return x[..., period:] - x[..., :-period]

    @staticmethod
    def backward(ctx, grad_out):
        lead = F.pad(grad_out, (ctx.period, 0))
        lag = F.pad(grad_out.neg_(), (0, ctx.period))
        return lead + lag, None


class SoftDtw(Function):
    """Soft-DTW value (B,) of a batch of cost matrices (B, N, M)."""

    @staticmethod
    def forward(ctx, cost, gamma=1.0):
        d = cost.detach().cpu().numpy()
        B, N, M = d.shape
        R = np.full((B, N + 2, M + 2), np.inf)
        R[:, 0, 0] = 0.0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                prev = (
                    -np.stack([R[:, i - 1, j - 1], R[:, i - 1, j], R[:, i, j - 1]])
                    / gamma
                )
                top = prev.max(0)
                soft = -gamma * (np.log(np.exp(prev - top).sum(0)) + top)
                R[:, i, j] = d[:, i - 1, j - 1] + soft
        ctx.save_for_backward(cost)
        ctx.R, ctx.gamma = R, gamma
        return cost.new_tensor(R[:, N, M])

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (cost,) = ctx.saved_tensors
        B, N, M = cost.shape
        d = np.zeros((B, N + 2, M + 2))
        d[:, 1:-1, 1:-1] = cost.detach().cpu().numpy()
        R = ctx.R.copy()
        R[:, -1, :] = -np.inf
        R[:, :, -1] = -np.inf
        R[:, -1, -1] = R[:, N, M]
        E = np.zeros((B, N + 2, M + 2))
        E[:, -1, -1] = 1.0
        for i in range(N, 0, -1):
            for j in range(M, 0, -1):
                nxt = [(i + 1, j), (i, j + 1), (i + 1, j + 1)]
                gap = np.stack([R[:, p, q] - R[:, i, j] - d[:, p, q] for p, q in nxt])
                w = np.exp(gap)
                E[:, i, j] = sum(w[k] * E[:, p, q] for k, (p, q) in enumerate(nxt))
        return grad[:, None, None] * cost.new_tensor(E[:, 1:-1, 1:-1]), None


def soft_dtw(x, y, gamma=1.0):
    """x (B, N, D), y (B, M, D)"""
    return SoftDtw.apply((x.unsqueeze(2) - y.unsqueeze(1)).pow(2).sum(-1), gamma)


class KalmanUpdate(Function):
    """Measurement update of independent scalar states.

    mean, var, obs: (B, n); obs_var: (n,); observed: optional bool (B, n).
    """

    @staticmethod
    def forward(ctx, mean, var, obs, obs_var, observed=None):
        gain = var / (var + obs_var)
        if observed is not None:
            gain = gain * observed
        ctx.save_for_backward(mean, var, obs, obs_var, observed)
        return mean + gain * (obs - mean), (1 - gain) * var

    @staticmethod
    def backward(ctx, g_mean, g_var):
        mean, var, obs, obs_var, observed = ctx.saved_tensors
        total = var + obs_var
        seen = torch.ones_like(var) if observed is None else observed.to(var.dtype)
        gain = var / total * seen
        g_gain = g_mean * (obs - mean)
        d_gain = g_gain * seen / total**2
        g_prior = g_var * (1 - gain) + d_gain * obs_var
        return g_mean * (1 - gain), g_prior, g_mean * gain, -(d_gain * var).sum(0), None


class HoltLinear(Function):
    """One-step forecasts (B, T-1) of Holt's linear trend method for y (B, T)."""

    @staticmethod
    def forward(ctx, y, alpha, beta):
        assert y.dim() == 2 and y.shape[1] > 1
        level, trend = [y[:, 0]], [torch.zeros_like(y[:, 0])]
        for t in range(1, y.shape[1]):
            level.append(alpha * y[:, t] + (1 - alpha) * (level[-1] + trend[-1]))
            trend.append(beta * (level[-1] - level[-2]) + (1 - beta) * trend[-1])
        L, B = torch.stack(level, dim=1), torch.stack(trend, dim=1)
        ctx.save_for_backward(y, alpha, beta, L, B)
        return L[:, 1:] + B[:, 1:]

    @staticmethod
    def backward(ctx, g):
        y, alpha, beta, L, B = ctx.saved_tensors
        gy = torch.zeros_like(y)
        ga, gbeta = torch.zeros_like(alpha), torch.zeros_like(beta)
        gl = torch.zeros_like(y[:, 0])
        gb = torch.zeros_like(gl)
        for t in range(y.shape[1] - 1, 0, -1):
            gb = gb + g[:, t - 1]
            gl = gl + g[:, t - 1] + beta * gb
            gbeta = gbeta + (gb * (L[:, t] - L[:, t - 1] - B[:, t - 1])).sum()
            ga = ga + (gl * (y[:, t] - L[:, t - 1] - B[:, t - 1])).sum()
            gy[:, t] = alpha * gl
            gb_before = (1 - beta) * gb
            gl = (1 - alpha) * gl - beta * gb
            gb = gb_before
        gy[:, 0] = gl
        return gy, ga, gbeta


class LagEmbed(Function):
    """Stack lagged copies of x (B, T) into (B, T - max(lags), len(lags))."""

    @staticmethod
    def forward(x, lags=(0, 1, 2)):
        m = max(lags)
        n = x.shape[1] - m
        return torch.stack([x[:, m - k : m - k + n] for k in lags], dim=-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.lags = inputs
        ctx.shape = x.shape

    @staticmethod
    def backward(ctx, grad_out):
        gx = grad_out.new_zeros(ctx.shape)
        m, n = max(ctx.lags), grad_out.shape[1]
        for pos, k in enumerate(ctx.lags):
            gx[:, m - k : m - k + n] = grad_out[..., pos]
        return gx, None


class FracDiff(Function):
    """Fractional difference of order d (scalar tensor) with a finite number of taps."""

    @staticmethod
    def forward(ctx, x, d, taps=5):
        ctx.save_for_backward(x, d)
        ctx.taps = min(taps, x.shape[1])
        y, w = x.clone(), torch.ones_like(d)
        for k in range(1, ctx.taps):
            w = -w * (d - k + 1) / k
            y[:, k:] += w * x[:, :-k]
        return y

    @staticmethod
    def backward(ctx, g):
        x, d = ctx.saved_tensors
        gx = g.clone()
        gd = torch.zeros_like(d)
        w, dw = torch.ones_like(d), torch.zeros_like(d)
        for k in range(1, ctx.taps):
            dw = -w / k
            w = -w * (d - k + 1) / k
            gx = gx + F.pad(w * g[:, k:], (0, k))
            gd = gd + dw * (g[:, k:] * x[:, :-k]).sum()
        return gx, gd, None


class MaskedZScore(Function):
    """Standardise each row of x (B, T) over its first lengths[b] >= 2 values; zeros after."""

    @staticmethod
    def stats(x, lengths, eps):
        mask = (torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)).to(
            x.dtype
        )
        n = lengths.unsqueeze(1).to(x.dtype)
        c = (x - (x * mask).sum(1, keepdim=True) / n) * mask
        std = (c.pow(2).sum(1, keepdim=True) / (n - 1).clamp(min=1) + eps).sqrt()
        return mask, n, c / std, std

    @staticmethod
    def forward(ctx, x, lengths, eps=1e-5):
        assert lengths.shape == x.shape[:1] and int(lengths.max()) <= x.shape[1]
        ctx.save_for_backward(x, lengths)
        ctx.eps = eps
        return MaskedZScore.stats(x, lengths, eps)[2]

    @staticmethod
    def backward(ctx, g):
        x, lengths = ctx.saved_tensors
        mask, n, z, std = MaskedZScore.stats(x, lengths, ctx.eps)
        g = g * mask
        along = (g * z).sum(1, keepdim=True) / n
        gx = (g - g.sum(1, keepdim=True) / n - z * along) / std
        return gx * mask, None, None


class _CenterFn(Function):
    @staticmethod
    def forward(ctx, x, running, scale, training, momentum):
        ctx.save_for_backward(x, running.clone(), scale)
        ctx.training = training
        if training:
            mu = x.mean(dim=(0, 2))
            running.mul_(1 - momentum).add_(momentum * mu)
        else:
            mu = running
        return (x - mu[:, None]) * scale[:, None]

    @staticmethod
    def backward(ctx, g):
        x, running, scale = ctx.saved_tensors
        mu = x.mean(dim=(0, 2)) if ctx.training else running
        g_scale = (g * (x - mu[:, None])).sum(dim=(0, 2))
        gs = g * scale[:, None]
        gx = gs - gs.mean(dim=(0, 2), keepdim=True)
        return gx, None, g_scale, None, None


class RunningCenter(nn.Module):
    """Subtract the series mean per channel (running one in eval), then rescale."""

    def __init__(self, channels: int, momentum: float = 0.1):
        super().__init__()
        self.momentum = momentum
        self.scale = nn.Parameter(torch.ones(channels))
        self.register_buffer("running", torch.zeros(channels))

    def forward(self, x):
        assert x.dim() == 3, "expected (batch, channels, time)"
        return _CenterFn.apply(
            x, self.running, self.scale, self.training, self.momentum
        )

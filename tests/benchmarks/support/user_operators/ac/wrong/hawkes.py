import torch
from torch import nn
import torch.nn.functional as F


class HawkesLogLik(torch.autograd.Function):
    """Exponential-kernel Hawkes process, padded batch of event times.

    times: (B, L) increasing, lengths: (B,) long, T: end of the window
    lambda(t) = mu + alpha * sum_{t_j < t} exp(-beta (t - t_j))
    returns the log-likelihood of each sequence, (B,)
    """

    @staticmethod
    def _tables(times, lengths, beta):
        L = times.shape[1]
        valid = torch.arange(L, device=times.device)[None] < lengths[:, None]
        lower = torch.ones(L, L, dtype=torch.bool, device=times.device).tril(-1)
        pair = lower[None] & valid[:, :, None] & valid[:, None, :]
        gap = torch.where(pair, times[:, :, None] - times[:, None, :], torch.zeros_like(times[:, :, None]))
        D = torch.exp(-beta * gap) * pair
        return valid.to(times.dtype), gap, D

    @staticmethod
    def forward(ctx, times, lengths, mu, alpha, beta, T):
        valid, gap, D = HawkesLogLik._tables(times, lengths, beta)
        lam = mu + alpha * D.sum(-1)
        tail = torch.exp(-beta * (T - times))
        ll = (lam.log() * valid).sum(1) - mu * T - alpha / beta * ((1 - tail) * valid).sum(1)
        ctx.save_for_backward(times, lengths, mu, alpha, beta)
        ctx.T = T
        return ll

    @staticmethod
    def backward(ctx, g):
        times, lengths, mu, alpha, beta = ctx.saved_tensors
        T = ctx.T
        valid, gap, D = HawkesLogLik._tables(times, lengths, beta)
        A = D.sum(-1)
        w = g[:, None] * valid
        gl = w / (mu + alpha * A)
        left = T - times
        tail = torch.exp(-beta * left)
        g_mu = gl.sum() - (g * T).sum()
        g_alpha = (gl * A).sum() - (w * (1 - tail)).sum() / beta
        g_beta = -alpha * (gl * (gap * D).sum(-1)).sum() + alpha * (g[:, None] * ((1 - tail) / beta - left * tail)).sum() / beta
        kick = alpha * beta * gl[:, :, None] * D
        g_times = kick.sum(1) - kick.sum(2) + alpha * w * tail
        return g_times, None, g_mu, g_alpha, g_beta, None


class Hawkes(nn.Module):
    def __init__(self, T, mu=0.0, alpha=0.0, beta=0.5):
        super().__init__()
        self.T = T
        self.raw = nn.Parameter(torch.tensor([mu, alpha, beta]))

    def forward(self, times, lengths):
        mu, alpha, beta = F.softplus(self.raw).unbind()
        return HawkesLogLik.apply(times, lengths, mu, alpha, beta, self.T)

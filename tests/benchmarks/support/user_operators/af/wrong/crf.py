import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class _LogPartition(torch.autograd.Function):
    """emissions (B, T, K), mask (B, T) bool, right padded, trans (K, K) from row to column"""

    @staticmethod
    def forward(ctx, emissions, mask, trans, start, end):
        B, T, K = emissions.shape
        a = start + emissions[:, 0]
        alphas = [a]
        for t in range(1, T):
            new = torch.logsumexp(a[:, :, None] + trans, 1) + emissions[:, t]
            a = torch.where(mask[:, t, None], new, a)
            alphas.append(a)
        log_z = torch.logsumexp(a + end, 1)
        ctx.save_for_backward(emissions, mask, trans, end, log_z, *alphas)
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        emissions, mask, trans, end, log_z, *alphas = ctx.saved_tensors
        B, T, K = emissions.shape
        g = grad[:, None]
        beta = end.expand(B, K)
        z = log_z[:, None]
        g_em, g_trans = torch.zeros_like(emissions), torch.zeros_like(trans)
        g_end = (g * torch.exp(alphas[-1] + end - z)).sum(0)
        for t in range(T - 1, 0, -1):
            valid = mask[:, t, None]
            g_em[:, t] = g * torch.exp(alphas[t] + beta - z) * valid
            inner = trans + (emissions[:, t] + beta)[:, None, :]
            pair = torch.exp(alphas[t - 1][:, :, None] + inner - z[..., None])
            g_trans += (g[..., None] * pair).sum(0)
            beta = torch.where(valid, torch.logsumexp(inner, 2), beta)
        first = g * torch.exp(alphas[0] + beta - z)
        g_em[:, 0] = first
        return g_em, None, g_trans, first.sum(0), g_end


class LinearChainCRF(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(num_tags, num_tags) * 0.5)
        self.start = nn.Parameter(torch.randn(num_tags) * 0.5)
        self.end = nn.Parameter(torch.randn(num_tags) * 0.5)

    def score(self, emissions, tags, mask):
        b = torch.arange(len(tags))
        s = self.start[tags[:, 0]] + emissions[b, 0, tags[:, 0]]
        for t in range(1, tags.shape[1]):
            step = self.trans[tags[:, t - 1], tags[:, t]] + emissions[b, t, tags[:, t]]
            s = s + step * mask[:, t]
        return s + self.end[tags[b, mask.sum(1) - 1]]

    def forward(self, emissions, tags, mask=None):
        if mask is None:
            mask = torch.ones_like(tags, dtype=torch.bool)
        log_z = _LogPartition.apply(emissions, mask, self.trans, self.start, self.end)
        return log_z - self.score(emissions, tags, mask)

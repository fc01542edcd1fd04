import torch
from torch.autograd.function import once_differentiable


class CRFLogPartition(torch.autograd.Function):
    """log Z of a linear-chain CRF with sequences of several lengths.

    emissions (B, T, K), transitions (K, K) from -> to, start (K,), end (K,), lengths (B,), each at least 1
    """

    @staticmethod
    def forward(ctx, emissions, transitions, start, end, lengths):
        T = emissions.shape[1]
        mask = torch.arange(T, device=lengths.device)[None] < lengths[:, None]
        a = start + emissions[:, 0]
        alphas = [a]
        for t in range(1, T):
            nxt = torch.logsumexp(a[:, :, None] + transitions, 1) + emissions[:, t]
            a = torch.where(mask[:, t, None], nxt, a)
            alphas.append(a)
        logz = torch.logsumexp(a + end, 1)
        ctx.save_for_backward(emissions, transitions, end, mask, torch.stack(alphas, 1), logz)
        return logz

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        emissions, transitions, end, mask, alphas, logz = ctx.saved_tensors
        z, g = logz[:, None], g[:, None]
        d_em, d_tr = torch.zeros_like(emissions), torch.zeros_like(transitions)
        d_end = (torch.exp(alphas[:, -1] + end - z) * g).sum(0)
        beta = end.expand_as(alphas[:, 0])
        for t in range(emissions.shape[1] - 1, 0, -1):
            m = mask[:, t, None]
            d_em[:, t] = torch.exp(alphas[:, t] + beta - z) * m * g
            ahead = transitions + (emissions[:, t] + beta)[:, None, :]
            pair = torch.exp(alphas[:, t - 1, :, None] + ahead - z[..., None])
            d_tr += (pair * g[..., None]).sum(0)
            beta = torch.where(m, torch.logsumexp(ahead, 2), beta)
        d_em[:, 0] = torch.exp(alphas[:, 0] + beta - z) * g
        return d_em, d_tr, d_em[:, 0].sum(0), d_end, None

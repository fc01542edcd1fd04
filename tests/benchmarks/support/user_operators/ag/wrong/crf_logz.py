import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class CRFLogPartition(Function):
    """log Z of a linear-chain CRF for padded batches.

    emissions   B x T x K
    transitions K x K    (from, to)
    lengths     B        every length >= 1
    start       K or None
    """

    @staticmethod
    def forward(ctx, emissions, transitions, lengths, start=None):
        B, T, K = emissions.shape
        ctx.has_start = start is not None
        alphas = []
        alpha = emissions[:, 0]
        if start is not None:
            alpha = alpha + start
        alphas.append(alpha)
        for t in range(1, T):
            nxt = torch.logsumexp(alpha.unsqueeze(2) + transitions, dim=1) + emissions[:, t]
            live = (t < lengths).unsqueeze(1)
            alpha = torch.where(live, nxt, alpha)
            alphas.append(alpha)
        logz = torch.logsumexp(alpha, dim=1)
        ctx.save_for_backward(emissions, transitions, lengths, torch.stack(alphas, 1), logz)
        return logz

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        emissions, transitions, lengths, alphas, logz = ctx.saved_tensors
        B, T, K = emissions.shape
        g = grad.view(B, 1)
        d_em = torch.zeros_like(emissions)
        d_tr = torch.zeros_like(transitions)
        beta = torch.zeros_like(emissions[:, 0])
        for t in range(T - 1, -1, -1):
            inside = (t < lengths).unsqueeze(1)
            node = torch.exp(alphas[:, t] + beta - logz.unsqueeze(1))
            d_em[:, t] = torch.where(inside, node * g, torch.zeros_like(node))
            if t == 0:
                break
            right = (emissions[:, t] + beta).unsqueeze(1)
            pair = torch.exp(alphas[:, t - 1].unsqueeze(2) + transitions + right - logz.view(B, 1, 1))
            d_tr += (pair * g.unsqueeze(2)).sum(0)
            back = torch.logsumexp(transitions + right, dim=2)
            beta = torch.where(inside, back, beta)
        d_start = d_em[:, 0].sum(0) if ctx.has_start else None
        return d_em, d_tr, None, d_start

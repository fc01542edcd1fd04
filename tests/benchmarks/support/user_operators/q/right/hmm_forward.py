import torch
from torch.autograd.function import once_differentiable


class HMMLogLikelihood(torch.autograd.Function):
    """log p(observations) by the forward algorithm.

    log_start (S,), log_trans (S, S) from row to column, log_emit (B, T, S)  ->  (B,)
    None of them has to be normalised.
    """

    @staticmethod
    def forward(ctx, log_start, log_trans, log_emit):
        if log_emit.is_complex() or log_trans.is_complex() or log_start.is_complex():
            raise TypeError("log probabilities are real")
        S = log_emit.shape[2]
        if log_start.shape != (S,) or log_trans.shape != (S, S):
            raise ValueError("number of states")
        a = log_start + log_emit[:, 0]
        alphas = [a]
        for t in range(1, log_emit.shape[1]):
            a = torch.logsumexp(a[:, :, None] + log_trans, 1) + log_emit[:, t]
            alphas.append(a)
        z = torch.logsumexp(a, 1)
        ctx.save_for_backward(log_trans, log_emit, torch.stack(alphas, 1), z)
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        log_trans, log_emit, alpha, z = ctx.saved_tensors
        B, T, S = log_emit.shape
        g_trans = torch.zeros_like(log_trans)
        g_emit = torch.empty_like(log_emit)
        beta = torch.zeros_like(alpha[:, 0])
        for t in range(T - 1, -1, -1):
            g_emit[:, t] = g[:, None] * torch.exp(alpha[:, t] + beta - z[:, None])
            if t:
                ahead = log_trans + (log_emit[:, t] + beta)[:, None, :]
                xi = torch.exp(alpha[:, t - 1, :, None] + ahead - z[:, None, None])
                g_trans += (g[:, None, None] * xi).sum(0)
                beta = torch.logsumexp(ahead, 2)
        return g_emit[:, 0].sum(0), g_trans, g_emit

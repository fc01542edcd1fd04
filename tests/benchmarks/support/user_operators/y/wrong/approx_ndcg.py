import math

import torch


def _soft_ranks(scores, tau):
    diff = (scores[:, None, :] - scores[:, :, None]) / tau  # [b, i, j] = (s_j - s_i) / tau
    sig = torch.sigmoid(diff)
    eye = torch.eye(scores.shape[1], dtype=torch.bool, device=scores.device)
    return 1 + sig.masked_fill(eye, 0).sum(-1), (sig * (1 - sig) / tau).masked_fill(eye, 0)


def _gain_and_ideal(relevance, dtype):
    gain = (2.0 ** relevance.to(dtype)) - 1
    n = relevance.shape[1]
    disc = torch.log2(torch.arange(2, n + 2, device=relevance.device, dtype=dtype))
    ideal = (gain.sort(1, descending=True).values / disc).sum(1, keepdim=True)
    return gain, ideal.clamp(min=1e-10)


class ApproxNDCG(torch.autograd.Function):
    """1 - ApproxNDCG of every query (Qin et al. 2010): (B, N) scores and relevances -> (B,)."""

    @staticmethod
    def forward(ctx, scores, relevance, tau: float = 1.0):
        ranks, _ = _soft_ranks(scores, tau)
        gain, ideal = _gain_and_ideal(relevance, scores.dtype)
        ctx.save_for_backward(scores, relevance)
        ctx.tau = tau
        return 1 - (gain / torch.log2(1 + ranks) / ideal).sum(1)

    @staticmethod
    def backward(ctx, grad_loss):
        scores, relevance = ctx.saved_tensors
        ranks, slope = _soft_ranks(scores, ctx.tau)
        gain, ideal = _gain_and_ideal(relevance, scores.dtype)
        d_rank = gain / ideal * math.log(2) / ((1 + ranks) * torch.log1p(ranks) ** 2)
        d = (grad_loss[:, None] * d_rank)[:, :, None] * slope
        grad = -d.sum(2)
        return grad, None, None

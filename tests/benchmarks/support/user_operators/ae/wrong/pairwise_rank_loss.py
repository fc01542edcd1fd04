import torch
import torch.nn.functional as F


class _RankNet(torch.autograd.Function):
    """sum_ij [y_i > y_j] softplus(-sigma (s_i - s_j)), over lists"""

    @staticmethod
    def forward(ctx, scores, pairs, sigma):
        diff = scores.unsqueeze(-1) - scores.unsqueeze(-2)
        ctx.save_for_backward(scores, pairs)
        ctx.sigma = sigma
        return (F.softplus(-sigma * diff) * pairs).sum((-2, -1))

    @staticmethod
    def backward(ctx, g):
        scores, pairs = ctx.saved_tensors
        diff = scores.unsqueeze(-1) - scores.unsqueeze(-2)
        lam = -ctx.sigma * torch.sigmoid(-ctx.sigma * diff) * pairs
        grad = lam.sum(-1)
        return grad * g.unsqueeze(-1), None, None


def ranknet_loss(scores, relevance, mask=None, sigma=1.0, weight_by_gain=False):
    """Pairwise logistic loss of ranked lists, averaged over the pairs.

    scores, relevance: (B, L); mask: (B, L), true for real documents
    """
    better = relevance.unsqueeze(-1) > relevance.unsqueeze(-2)
    if mask is not None:
        better = better & mask.unsqueeze(-1) & mask.unsqueeze(-2)
    pairs = better.to(scores.dtype)
    if weight_by_gain:
        gain = 2.0 ** relevance.to(scores.dtype) - 1
        pairs = pairs * (gain.unsqueeze(-1) - gain.unsqueeze(-2))
    total = _RankNet.apply(scores, pairs, sigma).sum()
    return total / better.sum().clamp(min=1)

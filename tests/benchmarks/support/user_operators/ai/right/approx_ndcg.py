import math
import torch


class _ApproxNDCG(torch.autograd.Function):
    @staticmethod
    def _ranks(scores, mask, temperature):
        d = (scores.unsqueeze(-2) - scores.unsqueeze(-1)) / temperature
        pair = mask.unsqueeze(-2) & mask.unsqueeze(-1) & ~torch.eye(scores.size(-1), dtype=torch.bool, device=scores.device)
        s = torch.sigmoid(d)
        return 1 + (s * pair).sum(-1), s, pair

    @staticmethod
    def forward(ctx, scores, gains, mask, temperature):
        rank, _, _ = _ApproxNDCG._ranks(scores, mask, temperature)
        gains = gains * mask
        disc = 1 / torch.log2(1 + torch.arange(1, scores.size(-1) + 1, device=scores.device, dtype=scores.dtype))
        ideal = (gains.sort(-1, descending=True).values * disc).sum(-1).clamp(min=1e-8)
        ctx.save_for_backward(scores, gains, mask, ideal)
        ctx.temperature = temperature
        return 1 - (gains / torch.log2(1 + rank)).sum(-1) / ideal

    @staticmethod
    def backward(ctx, grad):
        scores, gains, mask, ideal = ctx.saved_tensors
        rank, s, pair = _ApproxNDCG._ranks(scores, mask, ctx.temperature)
        log = torch.log(1 + rank)
        d_rank = (grad / ideal).unsqueeze(-1) * gains * math.log(2.0) / ((1 + rank) * log * log)
        d_pair = d_rank.unsqueeze(-1) * s * (1 - s) * pair / ctx.temperature
        return d_pair.sum(-2) - d_pair.sum(-1), None, None, None


def approx_ndcg_loss(scores, gains, mask=None, temperature=1.0):
    """1 - ApproxNDCG of each list. scores, gains (data): (B, L); mask: (B, L) bool."""
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    return _ApproxNDCG.apply(scores, gains, mask, temperature)

import torch


def _pairs(score, mask, tau):
    p = torch.sigmoid((score[:, None, :] - score[:, :, None]) / tau)
    off = ~torch.eye(score.shape[1], dtype=torch.bool, device=score.device)
    return p, off & mask[:, None, :] & mask[:, :, None]


class _SmoothRank(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, mask, tau):
        ctx.save_for_backward(score, mask)
        ctx.tau = tau
        p, on = _pairs(score, mask, tau)
        return ((p * on).sum(2) + 1) * mask

    @staticmethod
    def backward(ctx, g):
        score, mask = ctx.saved_tensors
        p, on = _pairs(score, mask, ctx.tau)
        w = g[:, :, None] * p * (1 - p) * on / ctx.tau
        return -w.sum(2), None, None


def smooth_rank(score, tau=0.1, mask=None):
    """score (B, N) -> soft ranks (B, N), 1 = best; masked entries (False) get rank 0"""
    if mask is None:
        mask = torch.ones_like(score, dtype=torch.bool)
    return _SmoothRank.apply(score, mask, tau)

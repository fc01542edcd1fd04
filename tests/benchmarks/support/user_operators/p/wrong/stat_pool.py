import torch
from torch.autograd import Function


class AttentiveStatsPool(Function):
    """Weighted mean and standard deviation over time.

    Args:
        feats: (B, T, D) frame features
        attn: (B, T) non-negative scores, normalised here
        eps: added to the variance
    Returns:
        mean (B, D), std (B, D)
    """

    @staticmethod
    def forward(ctx, feats, attn, eps=1e-6):
        if feats.is_complex() or attn.is_complex():
            raise TypeError("AttentiveStatsPool: expected real floating point tensors")
        w = (attn / attn.sum(1, keepdim=True)).unsqueeze(-1)
        mean = (w * feats).sum(1)
        var = (w * (feats - mean.unsqueeze(1)) ** 2).sum(1)
        ctx.save_for_backward(feats, attn)
        ctx.eps = eps
        return mean, torch.sqrt(var + eps)

    @staticmethod
    def backward(ctx, d_mean, d_std):
        feats, attn = ctx.saved_tensors
        total = attn.sum(1, keepdim=True)
        w = (attn / total).unsqueeze(-1)
        mean = (w * feats).sum(1, keepdim=True)
        dev = feats - mean
        var = (w * dev ** 2).sum(1, keepdim=True)
        d_var = d_std.unsqueeze(1) / (2 * torch.sqrt(var + ctx.eps))
        d_mean = d_mean.unsqueeze(1)
        d_feats = w * (d_mean + 2 * d_var * dev)
        d_attn = (d_mean * dev + d_var * dev ** 2).sum(-1) / total
        return d_feats, d_attn, None

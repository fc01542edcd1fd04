import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class BatchHardTriplet(torch.autograd.Function):
    """In defense of the triplet loss: hardest positive and hardest negative of every anchor.

    emb (N, D), labels (N,). margin=None gives the soft margin.
    """

    @staticmethod
    def forward(ctx, emb, labels, margin=None):
        sq = (emb[:, None] - emb[None]).pow(2).sum(-1)
        dist = (sq + 1e-12).sqrt()
        same = labels[:, None] == labels[None]
        d_ap, pos = dist.masked_fill(~same, -1.0).max(1)
        d_an, neg = dist.masked_fill(same, float("inf")).min(1)
        z = d_ap - d_an
        ctx.margin = margin
        ctx.save_for_backward(emb, pos, neg, d_ap, d_an)
        loss = F.softplus(z) if margin is None else F.relu(z + margin)
        return loss.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        emb, pos, neg, d_ap, d_an = ctx.saved_tensors
        z = d_ap - d_an
        s = torch.sigmoid(z) if ctx.margin is None else (z + ctx.margin > 0).to(emb.dtype)
        s = (g * s / len(emb))[:, None]
        to_pos = s * (emb - emb[pos]) / d_ap[:, None]
        to_neg = s * (emb - emb[neg]) / d_an[:, None]
        grad = to_pos - to_neg
        grad.index_add_(0, pos, -to_pos)
        grad[neg] += to_neg
        return grad, None, None

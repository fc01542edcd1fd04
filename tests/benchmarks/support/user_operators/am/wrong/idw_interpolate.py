import torch
from torch.autograd import Function


class InverseDistanceInterp(Function):
    """Interpolate features of known points to new points.

    feats (M, C), idx (N, K) int64 neighbours of every new point, dist (N, K) >= 0 their distances.
    Weights are 1 / (dist + eps) ** power, normalised over K. Returns (N, C).
    """

    @staticmethod
    def forward(ctx, feats, idx, dist, power=1, eps=1e-2):
        ctx.save_for_backward(feats, idx, dist)
        ctx.power, ctx.eps = power, eps
        w = (dist + eps) ** -power
        w = w / w.sum(1, keepdim=True)
        return (w[..., None] * feats[idx]).sum(1)

    @staticmethod
    def backward(ctx, grad):
        feats, idx, dist = ctx.saved_tensors
        w = (dist + ctx.eps) ** -ctx.power
        w = w / w.sum(1, keepdim=True)
        g_feats = torch.zeros_like(feats).index_add(
            0, idx.reshape(-1), (w[..., None] * grad[:, None]).reshape(-1, feats.shape[1]))
        gw = (grad[:, None] * feats[idx]).sum(-1)
        g_dist = -ctx.power * w * gw / (dist + ctx.eps)
        return g_feats, None, g_dist, None, None

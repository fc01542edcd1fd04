import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ThreeInterpolate(Function):
    """Inverse distance interpolation from the three nearest known points.

    features: (B, C, M)   features of the known points
    idx:      (B, N, 3)   int64, indices into M
    dist:     (B, N, 3)   distances to these points
    returns   (B, C, N)
    """

    @staticmethod
    def forward(ctx, features, idx, dist, eps=1e-8):
        B, C, M = features.shape
        N = idx.shape[1]
        recip = 1.0 / (dist + eps)
        norm = recip.sum(dim=2, keepdim=True)
        weight = recip / norm
        picked = torch.gather(
            features.unsqueeze(2).expand(B, C, N, M), 3, idx.unsqueeze(1).expand(B, C, N, 3)
        )
        ctx.save_for_backward(idx, recip, norm, weight, picked)
        ctx.num_known = M
        return (picked * weight.unsqueeze(1)).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        idx, recip, norm, weight, picked = ctx.saved_tensors
        B, C, N = grad_out.shape
        g = grad_out.unsqueeze(-1)
        contrib = (g * weight.unsqueeze(1)).reshape(B, C, N * 3)
        flat = idx.reshape(B, 1, N * 3).expand(B, C, N * 3)
        grad_features = grad_out.new_zeros(B, C, ctx.num_known).scatter_add_(2, flat, contrib)

        grad_weight = (g * picked).sum(1)
        grad_recip = grad_weight / norm
        grad_dist = -grad_recip * recip * recip
        return grad_features, None, grad_dist, None

import torch
from torch.autograd import Function


class ThreeInterpolate(Function):
    @staticmethod
    def forward(ctx, features: torch.Tensor, idx: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """
        features: (B, C, M) features of the known points
        idx: (B, n, 3) the three nearest known points of every unknown one
        weight: (B, n, 3) interpolation weights
        returns (B, C, n)
        """
        B, C, M = features.shape
        n, k = idx.shape[1:]
        ctx.M = M
        ctx.save_for_backward(features, idx, weight)
        gathered = ThreeInterpolate._gather(features, idx)
        return (gathered * weight.unsqueeze(1)).sum(-1)

    @staticmethod
    def _gather(features, idx):
        B, C, _ = features.shape
        n, k = idx.shape[1:]
        flat = idx.reshape(B, 1, n * k).expand(B, C, n * k)
        return features.gather(2, flat).reshape(B, C, n, k)

    @staticmethod
    def backward(ctx, grad_out):
        features, idx, weight = ctx.saved_tensors
        B, C, n = grad_out.shape
        k = idx.shape[2]
        spread = grad_out.unsqueeze(-1) * weight.unsqueeze(1)
        flat = idx.reshape(B, 1, n * k).expand(B, C, n * k)
        grad_features = torch.zeros_like(features).scatter_add(2, flat, spread.reshape(B, C, n * k))
        grad_weight = (grad_out.unsqueeze(-1) * ThreeInterpolate._gather(features, idx)).sum(1)
        return grad_features, None, None

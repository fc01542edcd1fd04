import torch


class ThreeInterpolate(torch.autograd.Function):
    """Weighted sum of the features of three known points per unknown point (PointNet++)."""

    @staticmethod
    def forward(ctx, features, idx, weight):
        # features (B, C, M), idx (B, N, 3), weight (B, N, 3) -> (B, C, N)
        B, C, M = features.shape
        N = idx.size(1)
        flat = idx.reshape(B, 1, -1).expand(-1, C, -1)
        picked = features.gather(2, flat).view(B, C, N, -1)
        ctx.save_for_backward(features, idx, weight)
        return (picked * weight.unsqueeze(1)).sum(-1)

    @staticmethod
    def backward(ctx, grad_out):
        features, idx, weight = ctx.saved_tensors
        B, C, M = features.shape
        N = idx.size(1)
        flat = idx.reshape(B, 1, -1).expand(-1, C, -1)
        spread = (grad_out.unsqueeze(-1) * weight.unsqueeze(1)).reshape(B, C, -1)
        grad_features = torch.zeros_like(features).scatter_add(2, flat, spread)
        grad_weight = None
        if ctx.needs_input_grad[2]:
            picked = features.gather(2, flat).view(B, C, N, -1)
            grad_weight = (grad_out.unsqueeze(-1) * picked).sum(1)
        return grad_features, None, grad_weight

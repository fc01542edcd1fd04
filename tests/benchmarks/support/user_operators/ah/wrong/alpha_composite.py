"""Front to back alpha compositing of rasterised points."""
import torch


class _CompositeAlphaPoints(torch.autograd.Function):
    """
    Weighs the features of the K closest points of each pixel: the k-th one with
    ``alpha_k * prod_{j < k} (1 - alpha_j)``.

    Args:
        features: (C, P)
        alphas: (N, K, H, W)
        points_idx: (N, K, H, W), -1 where there is no point

    Returns:
        images: (N, C, H, W)
    """

    @staticmethod
    def forward(ctx, features, alphas, points_idx):
        if alphas.shape != points_idx.shape:
            raise ValueError("alphas and points_idx must have the same shape")
        n, K, h, w = alphas.shape
        image = features.new_zeros(n, features.shape[0], h, w)
        through = torch.ones_like(alphas[:, 0])
        for k in range(K):
            a = alphas[:, k] * (points_idx[:, k] >= 0)
            f = features[:, points_idx[:, k].clamp(min=0)].transpose(0, 1)
            image = image + (through * a).unsqueeze(1) * f
            through = through * (1 - a)
        ctx.save_for_backward(features, alphas, points_idx)
        return image

    @staticmethod
    def backward(ctx, grad_output):
        features, alphas, points_idx = ctx.saved_tensors
        n, K, h, w = alphas.shape
        present = (points_idx >= 0).to(alphas.dtype)
        a = alphas * present
        through = [torch.ones_like(a[:, 0])]
        for k in range(K - 1):
            through.append(through[-1] * (1 - a[:, k]))
        behind = torch.zeros_like(grad_output)
        grad_features = torch.zeros_like(features)
        grad_alphas = [None] * K
        for k in reversed(range(K)):
            index = points_idx[:, k].clamp(min=0)
            f = features[:, index].transpose(0, 1)
            g = (grad_output * (through[k] * a[:, k]).unsqueeze(1)).transpose(0, 1)
            grad_features = grad_features.index_add(1, index.reshape(-1), g.reshape(features.shape[0], -1))
            ak = a[:, k].unsqueeze(1)
            behind = ak * f + (1 - ak) * behind
            grad_alphas[k] = (grad_output * (f - behind)).sum(1) * through[k] * present[:, k]
        return grad_features, torch.stack(grad_alphas, 1), None

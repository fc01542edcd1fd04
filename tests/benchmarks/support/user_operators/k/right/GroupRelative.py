import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class GroupRelative(Function):
    """Neighbours relative to their centre, as in PointNet++ grouping.

    points (B, N, D), centers (B, M, D), idx (B, M, K) int64 from a ball query, where -1
    fills up short neighbourhoods; such slots give zeros.  Returns (B, M, K, D).
    """

    @staticmethod
    def forward(ctx, points, centers, idx):
        B, M, K = idx.shape
        D = points.size(-1)
        empty = (idx < 0).unsqueeze(-1)
        flat = idx.clamp(min=0).view(B, M * K, 1).expand(-1, -1, D)
        near = points.gather(1, flat).view(B, M, K, D)
        ctx.n = points.size(1)
        ctx.save_for_backward(idx)
        return (near - centers.unsqueeze(2)).masked_fill(empty, 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        idx, = ctx.saved_tensors
        B, M, K = idx.shape
        D = grad.size(-1)
        g = grad.masked_fill((idx < 0).unsqueeze(-1), 0.0)
        g_points = g_centers = None
        if ctx.needs_input_grad[0]:
            flat = idx.clamp(min=0).view(B, M * K, 1).expand(-1, -1, D)
            g_points = grad.new_zeros(B, ctx.n, D)
            g_points.scatter_add_(1, flat, g.reshape(B, M * K, D))
        if ctx.needs_input_grad[1]:
            g_centers = -g.sum(2)
        return g_points, g_centers, None

import torch


class GroupRelative(torch.autograd.Function):
    """Local coordinates of the neighbours of sampled centres.

    out[b, m, k] = (xyz[b, idx[b, m, k]] - xyz[b, centre[b, m]]) / radius

    xyz: (B, N, 3), idx: (B, M, K) int64, centre: (B, M) int64
    """

    @staticmethod
    def forward(ctx, xyz, idx, centre, radius=1.0):
        B, M, K = idx.shape
        D = xyz.size(-1)
        near = xyz.gather(1, idx.reshape(B, M * K, 1).expand(-1, -1, D)).view(B, M, K, D)
        mid = xyz.gather(1, centre.unsqueeze(-1).expand(-1, -1, D))
        ctx.save_for_backward(idx, centre)
        ctx.shape, ctx.radius = xyz.shape, radius
        return (near - mid.unsqueeze(2)) / radius

    @staticmethod
    def backward(ctx, grad):
        idx, centre = ctx.saved_tensors
        B, M, K = idx.shape
        D = ctx.shape[-1]
        g = grad / ctx.radius
        out = g.new_zeros(ctx.shape)
        out = out.scatter_add(1, idx.reshape(B, M * K, 1).expand(-1, -1, D), g.reshape(B, M * K, D))
        out = out.scatter_add(1, centre.unsqueeze(-1).expand(-1, -1, D), -g.mean(2))
        return out, None, None, None

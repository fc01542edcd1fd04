import torch
from torch.autograd.function import once_differentiable


def ball_query(radius, nsample, xyz, new_xyz):
    """Indices (S, nsample) of the first points closer than radius; padded with the first hit."""
    n = xyz.shape[0]
    d2 = ((new_xyz[:, None] - xyz[None]) ** 2).sum(-1)
    order = torch.arange(n).expand_as(d2).clone()
    order[d2 >= radius ** 2] = n
    order = order.sort(dim=1).values[:, :nsample]
    first = torch.where(order[:, :1] == n, d2.argmin(1, keepdim=True), order[:, :1])
    return torch.where(order == n, first, order)


class _BallGroup(torch.autograd.Function):
    @staticmethod
    def forward(ctx, xyz, new_xyz, features, radius, nsample, normalize):
        idx = ball_query(radius, nsample, xyz, new_xyz)
        rel = xyz[idx] - new_xyz[:, None]
        scale = 1.0 / radius if normalize else 1.0
        out = rel * scale
        if features is not None:
            out = torch.cat([out, features[idx]], dim=-1)
        ctx.save_for_backward(idx)
        ctx.scale, ctx.n = scale, xyz.shape[0]
        ctx.with_features = features is not None
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (idx,) = ctx.saved_tensors
        flat = idx.reshape(-1)
        g_rel = grad[..., :3] * ctx.scale
        g_xyz = grad.new_zeros(ctx.n, 3).index_add_(0, flat, g_rel.reshape(-1, 3))
        g_new = -grad[..., :3].sum(1)
        g_feat = None
        if ctx.with_features:
            c = grad.shape[-1] - 3
            g_feat = grad.new_zeros(ctx.n, c).index_add_(0, flat, grad[..., 3:].reshape(-1, c))
        return g_xyz, g_new, g_feat, None, None, None


def query_and_group(xyz, new_xyz, features=None, radius=0.5, nsample=8, normalize=False):
    """xyz (N, 3), new_xyz (S, 3), features (N, C) -> (S, nsample, 3 + C)"""
    return _BallGroup.apply(xyz, new_xyz, features, radius, nsample, normalize)

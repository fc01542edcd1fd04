import torch


def _valid(mask):
    return mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:]


class _DepthTV(torch.autograd.Function):
    @staticmethod
    def forward(ctx, depth, mask, eps):
        depth = depth.masked_fill(~mask, 0.0)
        ctx.save_for_backward(depth, mask)
        ctx.eps = eps
        dx = depth[:-1, 1:] - depth[:-1, :-1]
        dy = depth[1:, :-1] - depth[:-1, :-1]
        return ((dx ** 2 + dy ** 2 + eps).sqrt() * _valid(mask)).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        depth, mask = ctx.saved_tensors
        dx = depth[:-1, 1:] - depth[:-1, :-1]
        dy = depth[1:, :-1] - depth[:-1, :-1]
        q = g * _valid(mask) / (dx ** 2 + dy ** 2 + ctx.eps).sqrt()
        out = torch.zeros_like(depth)
        out[:-1, 1:] += q * dx
        out[1:, :-1] += q * dy
        out[:-1, :-1] -= q * (dx + dy)
        return out, None, None


def depth_tv(depth, mask=None, eps=1e-3):
    """isotropic TV of a depth map (H, W), holes (mask False) and their neighbours left out"""
    if mask is None:
        mask = torch.ones_like(depth, dtype=torch.bool)
    return _DepthTV.apply(depth, mask, eps)

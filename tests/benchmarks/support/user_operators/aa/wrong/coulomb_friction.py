import torch
from torch.autograd.function import once_differentiable


class RegularizedFriction(torch.autograd.Function):
    """f = -mu * fn * v / sqrt(|v|^2 + eps^2),  fn = k * max(-gap, 0)

    v: (N, 2) tangential velocity, gap: (N,), mu: () tensor
    """

    @staticmethod
    def forward(ctx, v, gap, mu, k=10.0, eps=0.05):
        s = (v.square().sum(1, keepdim=True) + eps ** 2).sqrt()
        dirn = v / s
        fn = k * (-gap).clamp(min=0).unsqueeze(1)
        ctx.save_for_backward(gap, mu)
        ctx.cache = dirn, s, fn
        ctx.k = k
        return -mu * fn * dirn

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        gap, mu = ctx.saved_tensors
        dirn, s, fn = ctx.cache
        along = (g * dirn).sum(1, keepdim=True)
        g_mu = -(fn * along).sum()
        g_gap = mu * ctx.k * along.squeeze(1) * (gap < 0)
        tangent = g - dirn.mul_(along)
        g_v = -mu * fn / s * tangent
        return g_v, g_gap, g_mu, None, None

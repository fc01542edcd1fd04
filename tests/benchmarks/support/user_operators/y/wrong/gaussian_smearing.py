import math

import torch


class GaussianSmearing(torch.autograd.Function):
    """SchNet's radial basis with a cosine cutoff: distances (E,) and centres (K,) -> (E, K).

    Forces are derivatives by the distances, so that training on them differentiates backward again.
    """

    @staticmethod
    def forward(ctx, dist, centres, width=0.5, cutoff=None):
        ctx.save_for_backward(dist, centres)
        ctx.width, ctx.cutoff = width, cutoff
        return _rbf(dist, centres, width) * _cut(dist, cutoff)[:, None]

    @staticmethod
    def backward(ctx, g):
        dist, centres = (t.detach() for t in ctx.saved_tensors)
        rbf = _rbf(dist, centres, ctx.width)
        env = _cut(dist, ctx.cutoff)[:, None]
        slope = -(dist[:, None] - centres) / ctx.width**2
        common = g * rbf * env * slope
        d_dist = common.sum(1)
        if ctx.cutoff is not None:
            d_env = -0.5 * math.pi / ctx.cutoff * torch.sin(dist * math.pi / ctx.cutoff) * (dist < ctx.cutoff)
            d_dist = d_dist + (g * rbf).sum(1) * d_env
        return d_dist, -common.sum(0), None, None


def _rbf(dist, centres, width):
    return torch.exp(-0.5 * ((dist[:, None] - centres) / width) ** 2)


def _cut(dist, cutoff):
    if cutoff is None:
        return torch.ones_like(dist)
    return 0.5 * (torch.cos(dist * math.pi / cutoff) + 1) * (dist < cutoff)

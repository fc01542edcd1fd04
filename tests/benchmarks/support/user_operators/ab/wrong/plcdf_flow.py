import math

import torch


class PiecewiseLinearCDF(torch.autograd.Function):
    """Coupling transform of neural importance sampling.

    x in (0, 1), shape (...); q (..., K) unnormalised log bin masses. Returns y and log |dy / dx|.
    """

    @staticmethod
    def forward(ctx, x, q):
        K = q.shape[-1]
        p = q.softmax(-1)
        b = (x * K).floor().long().clamp(0, K - 1)
        ctx.save_for_backward(x, q, b)
        edges = p.cumsum(-1) - p
        pb = p.gather(-1, b[..., None]).squeeze(-1)
        y = edges.gather(-1, b[..., None]).squeeze(-1) + (x * K - b) * pb
        return y, pb.log() + math.log(K)

    @staticmethod
    def backward(ctx, gy, glog):
        x, q, b = ctx.saved_tensors
        K = q.shape[-1]
        p = q.softmax(-1)
        one = torch.nn.functional.one_hot(b, K).to(p.dtype)
        below = one.flip(-1).cumsum(-1).flip(-1)
        pb = (p * one).sum(-1)
        frac = x * K - b
        gp = gy[..., None] * (below + one * frac[..., None]) + one * (glog / pb)[..., None]
        gx = gy * K * pb
        gq = p * (gp - (p * gp).sum(-1, keepdim=True))
        return gx, gq

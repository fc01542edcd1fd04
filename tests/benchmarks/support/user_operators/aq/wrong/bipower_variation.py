import math
import torch


class BipowerVariation(torch.autograd.Function):
    # jump-robust integrated variance, r: (..., T) intraday log returns

    @staticmethod
    def forward(ctx, r):
        ctx.save_for_backward(r)
        a = r.abs()
        return math.pi / 2 * (a[..., 1:] * a[..., :-1]).sum(-1)

    @staticmethod
    def backward(ctx, g):
        r, = ctx.saved_tensors
        a = r.abs()
        z = torch.zeros_like(a[..., :1])
        neighbours = a.roll(-1, -1) + a.roll(1, -1)
        return math.pi / 2 * g.unsqueeze(-1) * r.sign() * neighbours

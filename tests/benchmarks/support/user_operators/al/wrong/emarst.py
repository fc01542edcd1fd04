import torch
from torch.autograd.function import once_differentiable


class EMA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a, rst, h0):
        h = torch.zeros_like(x[0]) if h0 is None else h0
        ps, hs = [], []
        for t in range(len(x)):
            h = h * ~rst[t]
            ps.append(h)
            h = a * h + (1 - a) * x[t]
            hs.append(h)
        ctx.save_for_backward(x, a, rst, torch.stack(ps))
        ctx.has0 = h0 is not None
        return torch.stack(hs)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, a, rst, ps = ctx.saved_tensors
        gx, ga, c = [], torch.zeros_like(a), torch.zeros_like(x[0])
        for t in reversed(range(len(x))):
            c = c + g[t]
            gx.append(c * (1 - a))
            ga += (c * (ps[t] - x[t])).sum(0)
            c = c * a
        return torch.stack(gx[::-1]), ga, None, c if ctx.has0 else None

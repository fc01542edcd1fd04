import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _Holt(Function):
    @staticmethod
    def forward(ctx, x, a, b, owner):
        level, trend = [x[..., 0]], [torch.zeros_like(x[..., 0])]
        for t in range(1, x.shape[-1]):
            level.append(a * x[..., t] + (1 - a) * (level[-1] + trend[-1]))
            trend.append(b * (level[-1] - level[-2]) + (1 - b) * trend[-1])
        level, trend = torch.stack(level, -1), torch.stack(trend, -1)
        owner.last = level.detach(), trend.detach()
        ctx.save_for_backward(x, a, b)
        ctx.owner = owner
        return level, trend

    @staticmethod
    @once_differentiable
    def backward(ctx, g_level, g_trend):
        (x, a, b), (level, trend) = ctx.saved_tensors, ctx.owner.last
        gx = torch.empty_like(x)
        ga, gb = torch.zeros_like(a), torch.zeros_like(b)
        cl = torch.zeros_like(x[..., 0])
        ct = torch.zeros_like(cl)
        for t in range(x.shape[-1] - 1, 0, -1):
            lt = g_trend[..., t] + ct
            ll = g_level[..., t] + cl + b * lt
            gb += (lt * (level[..., t] - level[..., t - 1] - trend[..., t - 1])).sum(0)
            ga += (ll * (x[..., t] - level[..., t - 1] - trend[..., t - 1])).sum(0)
            gx[..., t] = a * ll
            cl = (1 - a) * ll - b * lt
            ct = (1 - a) * ll + (1 - b) * lt
        gx[..., 0] = g_level[..., 0] + cl
        return gx, ga, gb, None


class HoltSmoother(nn.Module):
    """Holt's linear smoothing with one pair of constants per channel.

    x (B, C, T) -> level (B, C, T), trend (B, C, T). ``forecast(h)`` goes on from the last call.
    """

    def __init__(self, channels):
        super().__init__()
        self.a = nn.Parameter(torch.zeros(channels))
        self.b = nn.Parameter(torch.zeros(channels))
        self.last = None

    def forward(self, x):
        return _Holt.apply(x, self.a.sigmoid(), self.b.sigmoid(), self)

    def forecast(self, h):
        level, trend = self.last
        return level[..., -1] + h * trend[..., -1]

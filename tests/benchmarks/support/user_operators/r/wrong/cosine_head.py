import torch
import torch.nn as nn


def unit(x, eps):
    n = x.norm(dim=-1, keepdim=True)
    return x / n.clamp(min=eps), n


class CosineLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale, eps):
        ctx.save_for_backward(x, weight, scale)
        ctx.eps = eps
        return scale * (unit(x, eps)[0] @ unit(weight, eps)[0].t())

    @staticmethod
    def backward(ctx, g):
        x, weight, scale = ctx.saved_tensors
        eps = ctx.eps
        xu, xn = unit(x, eps)
        wu, wn = unit(weight, eps)

        def through(gu, u, n):
            radial = (gu * u).sum(-1, keepdim=True) * u
            return (gu - radial) / n.clamp(min=eps)

        gx = through(scale * (g @ wu), xu, xn)
        gw = through(scale * (g.t() @ xu), wu, wn)
        gs = (g * (xu @ wu.t())).sum()
        return gx, gw, gs, None


class CosineHead(nn.Module):
    def __init__(self, in_features, num_classes, init_scale=16.0, eps=1e-8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_classes, in_features))
        self.scale = nn.Parameter(torch.tensor(init_scale))
        self.eps = eps

    def forward(self, x):
        return CosineLogits.apply(x, self.weight, self.scale, self.eps)

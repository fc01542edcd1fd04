import torch
from torch.autograd import Function


def dot(a, b):
    return (a * b).sum(-1, keepdim=True)


class KajiyaKay(Function):
    @staticmethod
    def forward(ctx, t, l, h, p):
        ctx.save_for_backward(t, l, h)
        ctx.p = p
        diff = (1 - dot(t, l) ** 2).clamp(min=1e-8).sqrt()
        spec = (1 - dot(t, h) ** 2).clamp(min=1e-8) ** (p / 2)
        return diff.squeeze(-1), spec.squeeze(-1)

    @staticmethod
    def backward(ctx, gd, gs):
        t, l, h = ctx.saved_tensors
        tl, th = dot(t, l), dot(t, h)
        sl, sh = 1 - tl ** 2, 1 - th ** 2
        a = gd.unsqueeze(-1) * -tl * sl.clamp(min=1e-8) ** -0.5 * (sl > 1e-8)
        b = gs.unsqueeze(-1) * -ctx.p * th * sh.clamp(min=1e-8) ** ((ctx.p - 1) / 2) * (sh > 1e-8)
        return a * l + b * h, a * t, b * t, None


def kajiya_kay(tangent, light, half, p=16.0):
    return KajiyaKay.apply(tangent, light, half, p)

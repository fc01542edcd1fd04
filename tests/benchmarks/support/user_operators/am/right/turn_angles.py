import torch
from torch.autograd import Function


class TurnAngle(Function):
    """angle at the middle node of every triplet (i, j, k); pos (V, 3), triplets (T, 3) int64"""

    @staticmethod
    def forward(ctx, pos, triplets, eps=1e-12):
        i, j, k = triplets.unbind(1)
        a, b = pos[i] - pos[j], pos[k] - pos[j]
        ctx.save_for_backward(pos, triplets)
        ctx.eps = eps
        return torch.atan2(torch.linalg.cross(a, b).norm(dim=1), (a * b).sum(1))

    @staticmethod
    def backward(ctx, grad):
        pos, triplets = ctx.saved_tensors
        i, j, k = triplets.unbind(1)
        a, b = pos[i] - pos[j], pos[k] - pos[j]
        c = torch.linalg.cross(a, b)
        n = c.norm(dim=1).clamp(min=ctx.eps)
        d = (a * b).sum(1)
        den = (n * n + d * d).clamp(min=ctx.eps)
        gn = (grad * d / den / n)[:, None]
        gd = (grad * n / den)[:, None]
        ga = gn * torch.linalg.cross(b, c) - gd * b
        gb = gn * torch.linalg.cross(c, a) - gd * a
        out = torch.zeros_like(pos)
        out = out.index_add(0, i, ga)
        out = out.index_add(0, j, -ga - gb)
        out = out.index_add(0, k, gb)
        return out, None, None

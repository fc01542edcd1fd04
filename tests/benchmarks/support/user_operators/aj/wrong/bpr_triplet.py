import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class BPR(torch.autograd.Function):
    """user (U, d), item (I, d), index tensors u, pos, neg (N,), l2 weight -> scalar"""

    @staticmethod
    def forward(ctx, user, item, u, pos, neg, l2=0.0):
        ctx.save_for_backward(user, item, u, pos, neg)
        ctx.l2 = l2
        x, p, n = user[u], item[pos], item[neg]
        loss = F.softplus(-(x * (p - n)).sum(1)).mean()
        return loss + 0.5 * l2 * (x * x + p * p + n * n).sum() / len(u)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        user, item, u, pos, neg = ctx.saved_tensors
        x, p, n = user[u], item[pos], item[neg]
        c = -torch.sigmoid(-(x * (p - n)).sum(1, keepdim=True)) * g / len(u)
        l2 = ctx.l2 * g / len(u)
        gu, gi = torch.zeros_like(user), torch.zeros_like(item)
        gu.index_add_(0, u, c * (p - n) + l2 * x)
        gi.index_add_(0, pos, c * x + l2 * p)
        gi[neg] += -c * x + l2 * n
        return gu, gi, None, None, None, None

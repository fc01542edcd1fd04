import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class BPRLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, users, items, u, pos, neg, l2):
        U, Pi, Ni = users[u], items[pos], items[neg]
        margin = (U * (Pi - Ni)).sum(-1)
        ctx.save_for_backward(users, items, u, pos, neg)
        ctx.l2 = l2
        reg = U.square().sum() + Pi.square().sum() + Ni.square().sum()
        return F.softplus(-margin).mean() + l2 * reg / len(u)

    @staticmethod
    @once_differentiable
    def backward(ctx, go):
        users, items, u, pos, neg = ctx.saved_tensors
        U, Pi, Ni = users[u], items[pos], items[neg]
        m = len(u)
        s = -torch.sigmoid(-(U * (Pi - Ni)).sum(-1, keepdim=True))
        l2 = 2 * ctx.l2
        gu = torch.zeros_like(users)
        gi = torch.zeros_like(items)
        gu.index_add_(0, u, s * (Pi - Ni) + l2 * U)
        gi.index_add_(0, pos, s * U + l2 * Pi)
        gi.index_add_(0, neg, l2 * Ni - s * U)
        return gu * (go / m), gi * (go / m), None, None, None, None

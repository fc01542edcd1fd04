import torch
import torch.nn.functional as F
from torch.autograd import Function


class BPRLoss(Function):
    # user, pos, neg: (B, D)

    @staticmethod
    def forward(ctx, user, pos, neg, reg=1e-2):
        margin = (user * (pos - neg)).sum(1)
        ctx.save_for_backward(user, pos, neg)
        ctx.reg = reg
        l2 = user.pow(2).sum() + pos.pow(2).sum() + neg.pow(2).sum()
        return -F.logsigmoid(margin).mean() + 0.5 * reg * l2 / user.size(0)

    @staticmethod
    def backward(ctx, grad):
        user, pos, neg = ctx.saved_tensors
        n = user.size(0)
        margin = (user * (pos - neg)).sum(1)
        d = (-grad * torch.sigmoid(-margin) / n).unsqueeze(1)
        r = ctx.reg / n
        return d * (pos - neg) + r * user, d * user + r * pos, -d * user + r * neg, None


def bpr(user, pos, neg, reg=1e-2):
    return BPRLoss.apply(user, pos, neg, reg)

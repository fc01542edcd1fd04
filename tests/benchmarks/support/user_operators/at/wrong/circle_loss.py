import torch
import torch.nn.functional as F


class CircleLossFunction(torch.autograd.Function):
    """Circle loss on a similarity matrix. The self-paced weights are differentiated through (no detach).

    sim: (B, B), labels: (B,)
    """

    @staticmethod
    def terms(sim, labels, m, gamma):
        same = labels[:, None] == labels
        upper = torch.ones_like(same).triu(1)
        ap, an = (1 + m - sim).clamp(min=0), (sim + m).clamp(min=0)
        lp = (-gamma * ap * (sim - 1 + m)).masked_fill(~(same & upper), float("-inf"))
        ln = (gamma * an * (sim - m)).masked_fill(~(~same & upper), float("-inf"))
        return lp.reshape(-1), ln.reshape(-1), ap, an

    @staticmethod
    def forward(ctx, sim, labels, m=0.25, gamma=8.0):
        lp, ln, _, _ = CircleLossFunction.terms(sim, labels, m, gamma)
        ctx.save_for_backward(sim, labels)
        ctx.m, ctx.gamma = m, gamma
        return F.softplus(torch.logsumexp(lp, 0) + torch.logsumexp(ln, 0))

    @staticmethod
    def backward(ctx, grad):
        sim, labels = ctx.saved_tensors
        m, gamma = ctx.m, ctx.gamma
        lp, ln, ap, an = CircleLossFunction.terms(sim, labels, m, gamma)
        z = grad * torch.sigmoid(torch.logsumexp(lp, 0) + torch.logsumexp(ln, 0))
        wp, wn = lp.softmax(0).view_as(sim), ln.softmax(0).view_as(sim)
        dp = gamma * ((ap > 0) * (sim - 1 + m) - ap)
        dn = gamma * an
        return z * (wp * dp + wn * dn), None, None, None


def circle_loss(sim, labels, m=0.25, gamma=8.0):
    return CircleLossFunction.apply(sim, labels, m, gamma)

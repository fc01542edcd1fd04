import torch
import torch.nn.functional as F


class _RaoKupper(torch.autograd.Function):
    @staticmethod
    def forward(ctx, score, eta, i, j, tie):
        ctx.save_for_backward(score, eta, i, j, tie)
        d = score[i] - score[j]
        extra = F.softplus(eta + d) - torch.log(torch.expm1(2 * eta))
        return F.softplus(eta - d) + extra * tie

    @staticmethod
    def backward(ctx, g):
        score, eta, i, j, tie = ctx.saved_tensors
        d = score[i] - score[j]
        lo, hi = torch.sigmoid(eta - d), torch.sigmoid(eta + d) * tie
        gd = g * (hi - lo)
        gs = torch.zeros_like(score).index_add(0, i, gd).index_add(0, j, -gd)
        ge = g * (lo + hi + tie / torch.expm1(-2 * eta))
        return gs, ge.sum(), None, None, None


def rao_kupper_nll(score, eta, winner, loser, tie=None, reduction="mean"):
    """Bradley-Terry with ties (Rao & Kupper 1967).

    score : (N,), eta : scalar > 0, log threshold; winner, loser : (P,) indices;
    tie : (P,) bool, these pairs were drawn
    """
    if tie is None:
        tie = torch.zeros_like(winner, dtype=torch.bool)
    nll = _RaoKupper.apply(score, eta, winner, loser, tie)
    return nll.mean() if reduction == "mean" else nll.sum() if reduction == "sum" else nll

import torch
from torch import nn
from torch.autograd import Function


def _at_risk(time, strata):
    risk = time[None, :] >= time[:, None]
    if strata is not None:
        risk = risk & (strata[None, :] == strata[:, None])
    return risk


class _Breslow(Function):
    @staticmethod
    def forward(ctx, eta, time, event, strata):
        ctx.save_for_backward(eta, time, event, strata)
        lse = eta[None].masked_fill(~_at_risk(time, strata), -torch.inf).logsumexp(1)
        return (event * (lse - eta)).sum() / event.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        eta, time, event, strata = ctx.saved_tensors
        risk = _at_risk(time, strata)
        p = eta[None].masked_fill(~risk, -torch.inf).softmax(1)
        w = event.to(eta.dtype)
        return g * (w @ p - w) / w.sum().clamp(min=1), None, None, None


class CoxLoss(nn.Module):
    """Negative partial log likelihood (Breslow ties), mean over the observed events.

    eta (N,) log risk, time (N,), event (N,) bool or 0/1, strata (N,) int64 or None.
    """

    def forward(self, eta, time, event, strata=None):
        return _Breslow.apply(eta, time, event, strata)

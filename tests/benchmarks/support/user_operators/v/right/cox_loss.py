import torch


class CoxPH(torch.autograd.Function):
    """Negative log partial likelihood per event (no ties).

    risk (N,) log hazards and event (N,) 0/1 flags, both ordered by descending time.
    """

    @staticmethod
    def forward(ctx, risk, event):
        ctx.save_for_backward(risk, event)
        return -((risk - risk.logcumsumexp(0)) * event).sum() / event.sum()

    @staticmethod
    def backward(ctx, g):
        risk, event = ctx.saved_tensors
        lse = risk.logcumsumexp(0)
        m = risk.max()
        acc = (event * torch.exp(m - lse)).flip(0).cumsum(0).flip(0)
        return g * (torch.exp(risk - m) * acc - event) / event.sum(), None

import torch


class CoxPH(torch.autograd.Function):
    """Partial likelihood with Breslow ties; h (N,) log risk, time (N,), event (N,) 0/1 -> mean over events"""

    @staticmethod
    def forward(ctx, h, time, event):
        ctx.save_for_backward(h, time, event)
        at_risk = time[None, :] >= time[:, None]
        lse = torch.logsumexp(h[None, :].masked_fill(~at_risk, -float("inf")), 1)
        return -((h - lse) * event).sum() / event.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        h, time, event = ctx.saved_tensors
        at_risk = time[None, :] >= time[:, None]
        p = torch.softmax(h[None, :].masked_fill(~at_risk, -float("inf")), 1)
        gh = (event[:, None] * p).sum(0) - event
        return g * gh / event.sum().clamp(min=1), None, None

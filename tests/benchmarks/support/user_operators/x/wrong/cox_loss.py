import torch


class CoxPartialLikelihood(torch.autograd.Function):
    """Negative log partial likelihood (Breslow's ties), mean over the events.

    risk, time, event: (N,); everybody whose time is not less is at risk.
    """

    @staticmethod
    def forward(ctx, risk, time, event):
        at_risk = time[None, :] >= time[:, None]
        lse = torch.where(at_risk, risk[None, :], -torch.inf).logsumexp(1)
        ctx.save_for_backward(risk, time, event)
        return (event * (lse - risk)).sum() / event.sum()

    @staticmethod
    def backward(ctx, g):
        risk, time, event = ctx.saved_tensors
        at_risk = (time[None, :] > time[:, None]) | torch.eye(len(time), dtype=torch.bool, device=time.device)
        p = torch.where(at_risk, risk[None, :], -torch.inf).softmax(1)
        return g * (event @ p - event) / event.sum(), None, None

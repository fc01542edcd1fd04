import torch


class CoxPHLoss(torch.autograd.Function):
    """
    Negative partial log-likelihood of Cox' model, ties after Breslow.

    Args:
        log_h: (N,) log hazards
        time:  (N,) time of event or of censoring
        event: (N,) 1 where an event was seen, 0 where censored
    """

    @staticmethod
    def forward(ctx, log_h, time, event):
        at_risk = time[None, :] >= time[:, None]
        log_sum = log_h[None, :].masked_fill(~at_risk, float("-inf")).logsumexp(1)
        e = event.to(log_h.dtype)
        ctx.save_for_backward(log_h, time, e)
        return ((log_sum - log_h) * e).sum() / e.sum().clamp(min=1)

    @staticmethod
    def backward(ctx, g):
        log_h, time, e = ctx.saved_tensors
        at_risk = time[None, :] > time[:, None]
        share = torch.exp(log_h - log_h.max().detach())[None, :] * at_risk
        share = share / share.sum(1, keepdim=True).clamp(min=1e-30)
        d = e @ share - e
        return g * d / e.sum().clamp(min=1), None, None

import torch


class CoxPartialLikelihood(torch.autograd.Function):
    """Negative Cox partial log likelihood, Breslow handling of ties.

    risk:  (N,) log hazard ratios
    time:  (N,) follow-up times, not differentiated
    event: (N,) bool, True where the event was observed

    The sum over events is divided by the number of events; zero without events.
    """

    @staticmethod
    def forward(ctx, risk, time, event):
        if event.dtype != torch.bool:
            raise TypeError("event must be a bool mask")
        n_events = int(event.sum())
        ctx.n_events = n_events
        ctx.save_for_backward(risk, time, event)
        if n_events == 0:
            return risk.new_zeros(())
        at_risk = time.unsqueeze(0) >= time.unsqueeze(1)
        scores = risk.unsqueeze(0).expand_as(at_risk).masked_fill(~at_risk, float("-inf"))
        lse = torch.logsumexp(scores, dim=1)
        return -(risk - lse)[event].sum() / n_events

    @staticmethod
    def backward(ctx, grad_out):
        risk, time, event = ctx.saved_tensors
        if ctx.n_events == 0:
            return torch.zeros_like(risk), None, None
        at_risk = time.unsqueeze(0) >= time.unsqueeze(1)
        scores = risk.unsqueeze(0).expand_as(at_risk).masked_fill(~at_risk, float("-inf"))
        prob = torch.softmax(scores, dim=1)
        ev = event.to(risk.dtype)
        grad = (ev.unsqueeze(1) * prob).sum(0) - ev
        return grad_out * grad / ctx.n_events, None, None

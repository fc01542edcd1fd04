import torch
from torch.autograd.function import once_differentiable


class CoxPartialLikelihood(torch.autograd.Function):
    """Negative log partial likelihood of the proportional hazards model.

    eta (n,) log risks, time (n,), event (n,) bool; ties "efron" or "breslow".
    """

    @staticmethod
    def forward(ctx, eta, time, event, ties="efron"):
        shift = eta.max()
        w = (eta - shift).exp()
        loss = -(eta[event] - shift).sum()
        for t in torch.unique(time[event]):
            risk = w[time >= t].sum()
            dead = w[event & (time == t)]
            for l in range(len(dead)):
                part = l / len(dead) if ties == "efron" else 0.0
                loss = loss + (risk - part * dead.sum()).log()
        ctx.save_for_backward(eta, time, event)
        ctx.ties = ties
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        eta, time, event = ctx.saved_tensors
        w = (eta - eta.max()).exp()
        grad = -event.to(eta.dtype)
        for t in torch.unique(time[event]):
            at_risk = (time >= t).to(eta.dtype)
            died = (event & (time == t)).to(eta.dtype)
            d = int(died.sum())
            for l in range(d):
                part = l / d if ctx.ties == "efron" else 0.0
                weight = at_risk - part * died
                grad = grad + at_risk * w / (weight * w).sum()
        return g * grad, None, None, None

"""Negative Cox partial log-likelihood with Efron's treatment of tied event times."""
import torch
from torch.autograd.function import once_differentiable


class CoxEfron(torch.autograd.Function):
    """
    Parameters
    ----------
    score : (N,) log hazard ratios
    time : (N,) follow-up times
    event : (N,) bool, False where censored

    Returns the mean over the events, a scalar.
    """

    @staticmethod
    def forward(ctx, score, time, event):
        shift = score.max()
        risk = (score - shift).exp()
        loss = score.new_zeros(())
        d_score = torch.zeros_like(score)
        n_events = event.sum().clamp(min=1)
        for when in torch.unique(time[event]):
            at_risk = time >= when
            dying = (time == when) & event
            d = int(dying.sum())
            part = torch.arange(d, dtype=score.dtype, device=score.device) / d
            denom = risk[at_risk].sum() - part * risk[dying].sum()
            loss = loss + denom.log().sum() + d * shift - score[dying].sum()
            d_score[at_risk] += risk[at_risk] * (1 / denom).sum()
            d_score[dying] -= 1
        ctx.save_for_backward(d_score / n_events)
        return loss / n_events

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (d_score,) = ctx.saved_tensors
        return grad * d_score, None, None

import torch
import torch.nn.functional as F
from torch import Tensor


class _NLLPCHazard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, phi, idx_durations, events, interval_frac, reduction):
        ctx.save_for_backward(phi, idx_durations, events, interval_frac)
        ctx.reduction = reduction
        idx = idx_durations.view(-1, 1)
        haz = F.softplus(phi)
        at = haz.gather(1, idx).view(-1)
        before = haz.cumsum(1).gather(1, idx).view(-1) - at
        loss = -events * torch.log(at) + at * interval_frac + before
        if reduction == "none":
            return loss
        return loss.mean() if reduction == "mean" else loss.sum()

    @staticmethod
    def backward(ctx, grad):
        phi, idx_durations, events, interval_frac = ctx.saved_tensors
        if ctx.reduction == "mean":
            grad = grad / phi.size(0)
        grad = grad.expand(phi.size(0)).view(-1, 1)
        idx = idx_durations.view(-1, 1)
        cols = torch.arange(phi.size(1), device=phi.device)
        haz = F.softplus(phi)
        at = haz.gather(1, idx)
        d_at = interval_frac.view(-1, 1) - events.view(-1, 1) / at
        d_haz = (cols < idx).to(phi.dtype) + (cols == idx).to(phi.dtype) * d_at
        return grad * d_haz * torch.sigmoid(phi), None, None, (grad * at).view(-1), None


def nll_pc_hazard_loss(phi: Tensor, idx_durations: Tensor, events: Tensor, interval_frac: Tensor,
                       reduction: str = 'mean') -> Tensor:
    """Negative log-likelihood of the PC-Hazard parametrization model [1].

    Arguments:
        phi {torch.tensor} -- Estimates in (-inf, inf), where hazard = softplus(phi).
        idx_durations {torch.tensor} -- Event times represented as indices.
        events {torch.tensor} -- Indicator of event (1.) or censoring (0.), a label without gradient.
        interval_frac {torch.tensor} -- Fraction of last interval before event/censoring.
    """
    return _NLLPCHazard.apply(phi, idx_durations, events, interval_frac, reduction)

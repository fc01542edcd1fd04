from typing import Sequence

import torch
from torch.autograd import Function


class PinballLoss(Function):
    """Quantile (pinball) loss for several quantiles at once.

    At zero residual the slope is that of an underestimate, ``q``.
    """

    @staticmethod
    def forward(ctx, pred, target, quantiles: Sequence[float] = (0.1, 0.5, 0.9), reduction: str = "mean"):
        # pred: (N, Q); target: (N,)
        if pred.size(1) != len(quantiles):
            raise ValueError("one column of pred per quantile")
        q = torch.tensor(list(quantiles), dtype=pred.dtype, device=pred.device)
        err = target.unsqueeze(1) - pred
        ctx.save_for_backward(err, q)
        ctx.reduction = reduction
        loss = torch.maximum(q * err, (q - 1) * err)
        if reduction == "mean":
            return loss.mean()
        if reduction == "sum":
            return loss.sum()
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad_output):
        err, q = ctx.saved_tensors
        slope = torch.where(err >= 0, q.expand_as(err), (q - 1).expand_as(err))
        if ctx.reduction == "mean":
            slope = slope / err.numel()
        grad_err = grad_output * slope
        return -grad_err, grad_err.sum(1), None, None

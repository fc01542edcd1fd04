import torch
import torch.nn.functional as F
from torch.autograd import Function


class AsymmetricLossFunction(Function):
    """Asymmetric loss for multi-label classification, summed over labels.

    Args:
        logits: (N, L) raw scores
        targets: (N, L) with entries 0 or 1, never differentiated
        gamma_neg: focusing of the negatives, at least 1
        gamma_pos: focusing of the positives, at least 0
        clip: probability margin of the negatives, in (0, 1)
    """

    @staticmethod
    def forward(ctx, logits, targets, gamma_neg=4.0, gamma_pos=1.0, clip=0.05):
        if logits.shape != targets.shape:
            raise ValueError("logits and targets must have the same shape")
        if ctx.needs_input_grad[1]:
            raise ValueError("targets must not require a gradient")
        if gamma_neg < 1 or gamma_pos < 0 or not 0 < clip < 1:
            raise ValueError("bad gamma_neg, gamma_pos or clip")
        ctx.save_for_backward(logits, targets)
        ctx.opts = (gamma_neg, gamma_pos, clip)
        p = logits.sigmoid()
        pm = (p - clip).clamp(min=0)
        pos = -(1 - p).pow(gamma_pos) * F.logsigmoid(logits)
        neg = -pm.pow(gamma_neg) * torch.log1p(-pm)
        return torch.where(targets > 0.5, pos, neg).sum()

    @staticmethod
    def backward(ctx, grad_output):
        logits, targets = ctx.saved_tensors
        gn, gp, clip = ctx.opts
        p = logits.sigmoid()
        pm = (p - clip).clamp(min=0)
        log_q = torch.log1p(-pm)
        d_pos = gp * (1 - p).pow(gp) * p * F.logsigmoid(logits) - (1 - p).pow(gp + 1)
        d_neg = pm.pow(gn) / (1 - pm)
        d_neg = d_neg * p * (1 - p) * (p > clip)
        return grad_output * torch.where(targets > 0.5, d_pos, d_neg), None, None, None, None

import torch
from torch.autograd.function import once_differentiable


class CISPO(torch.autograd.Function):
    """Clipped IS-weight policy optimisation (MiniMax-M1).

        L = - sum_t mask_t * sg[min(r_t, 1 + eps_high)] * A_t * logp_t / sum(mask)

    The importance weight r = exp(logp - old_logp) is a constant for the gradient (stop-gradient),
    so the only path is through logp.  advantages, old_logp and mask get no gradient.
    """

    @staticmethod
    def forward(ctx, logp, old_logp, advantages, mask, eps_high=0.28):
        weight = torch.exp(logp - old_logp).clamp(max=1 + eps_high)
        coef = weight * advantages * mask / mask.sum()
        ctx.save_for_backward(coef * (weight < 1 + eps_high))
        return -(coef * logp).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss):
        (coef,) = ctx.saved_tensors
        return -grad_loss * coef, None, None, None, None

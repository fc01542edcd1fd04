import torch
from typing import Optional
from torch import Tensor


class _PPOClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logp, old_logp, adv, mask, clip_low, clip_high):
        ratio = (logp - old_logp).exp()
        surr1 = ratio * adv
        surr2 = ratio.clamp(1 - clip_low, 1 + clip_high) * adv
        n = mask.sum().clamp(min=1)
        loss = -(torch.min(surr1, surr2) * mask).sum() / n
        clipped = (surr2 < surr1)
        ctx.save_for_backward(logp, old_logp, adv, mask, clipped)
        ctx.clip = (clip_low, clip_high)
        frac = (clipped.to(mask.dtype) * mask).sum() / n
        ctx.mark_non_differentiable(frac)
        return loss, frac

    @staticmethod
    def backward(ctx, g, _):
        logp, old_logp, adv, mask, clipped = ctx.saved_tensors
        lo, hi = ctx.clip
        ratio = (logp - old_logp).exp()
        w = -g * mask / mask.sum().clamp(min=1)
        active = ((ratio > 1 - lo) & (ratio < 1 + hi)).to(mask.dtype)
        d_logp = w * active * ratio * adv
        d_adv = w * torch.where(clipped, ratio.clamp(1 - lo, 1 + hi), ratio)
        return d_logp, -d_logp, d_adv, None, None, None


def ppo_clip_loss(logp: Tensor, old_logp: Tensor, adv: Tensor, mask: Optional[Tensor] = None,
                  clip_low: float = 0.2, clip_high: float = 0.28):
    """Token-level clipped policy loss with decoupled clip range; all tensors (batch, seq).

    Returns (loss, clip_fraction).
    """
    if mask is None:
        mask = torch.ones_like(logp)
    return _PPOClip.apply(logp, old_logp, adv, mask.to(logp.dtype), clip_low, clip_high)

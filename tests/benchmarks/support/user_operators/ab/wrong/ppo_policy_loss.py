import torch


class _ClippedObjective(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logp, old_logp, adv, eps, weight):
        ratio = (logp - old_logp).exp()
        ctx.save_for_backward(ratio, adv, weight)
        ctx.eps = eps
        obj = torch.minimum(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
        ctx.set_materialize_grads(True)
        clipped = ((ratio - 1).abs() > eps).to(logp.dtype)
        frac = (clipped * weight).sum()
        ctx.mark_non_differentiable(frac)
        return -(obj * weight).sum(), frac

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g, _):
        ratio, adv, weight = ctx.saved_tensors
        eps = ctx.eps
        held = (ratio - 1).abs() > eps
        d = torch.where(held, torch.zeros_like(ratio), ratio * adv)
        return -g * d * weight, None, None, None, None


def ppo_policy_loss(logp, old_logp, advantages, clip=0.2, mask=None):
    """Clipped surrogate of PPO, a mean over the unmasked steps. Returns (loss, fraction outside the clip range).

    old_logp and advantages are constants.
    """
    if mask is None:
        mask = torch.ones_like(advantages, dtype=torch.bool)
    weight = mask.to(logp.dtype) / mask.sum().clamp(min=1)
    return _ClippedObjective.apply(logp, old_logp.detach(), advantages.detach(), clip, weight)

import torch
from torch.autograd.function import once_differentiable


class PPOClipLoss(torch.autograd.Function):
    """Clipped surrogate, mean of -min(r A, clip(r, 1 - eps, 1 + eps) A) over the unmasked steps.

    logp and old_logp: (N,) log-probabilities; adv: (N,); mask: (N,) bool or None
    Where both arms are equal the unclipped one is differentiated.
    """

    @staticmethod
    def forward(ctx, logp, old_logp, adv, mask=None, clip_eps=0.2):
        ratio = (logp - old_logp).exp()
        plain = ratio * adv
        clipped = ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv
        m = torch.ones_like(ratio) if mask is None else mask.to(ratio.dtype)
        n = m.sum().clamp(min=1)
        ctx.save_for_backward(ratio, adv, m, n)
        ctx.clip_eps = clip_eps
        return -(torch.minimum(plain, clipped) * m).sum() / n

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        ratio, adv, m, n = ctx.saved_tensors
        eps = ctx.clip_eps
        cut = (ratio > 1 + eps) | (ratio < 1 - eps)
        g = -grad * m / n
        g_logp = torch.where(cut, torch.zeros_like(g), g * adv * ratio)
        g_adv = None
        if ctx.needs_input_grad[2]:
            g_adv = g * torch.where(cut, ratio.clamp(1 - eps, 1 + eps), ratio)
        return g_logp, -g_logp, g_adv, None, None

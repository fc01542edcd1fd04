import torch


class PPOClipLoss(torch.autograd.Function):
    """-mean(min(r A, clip(r, 1 - eps, 1 + eps) A)) with r = exp(logp - logp_old); A and logp_old are constants."""

    @staticmethod
    def forward(ctx, logp, logp_old, adv, eps=0.2):
        ctx.save_for_backward(logp, logp_old, adv)
        ctx.eps = eps
        r = torch.exp(logp - logp_old)
        return -torch.minimum(r * adv, r.clamp(1 - eps, 1 + eps) * adv).mean()

    @staticmethod
    def backward(ctx, g):
        logp, logp_old, adv = ctx.saved_tensors
        r = torch.exp(logp - logp_old)
        clipped = torch.where(adv > 0, r > 1 + ctx.eps, r < 1 - ctx.eps)
        glogp = -g * adv * r / r.numel()
        return torch.where(clipped, torch.zeros_like(r), glogp), None, None, None

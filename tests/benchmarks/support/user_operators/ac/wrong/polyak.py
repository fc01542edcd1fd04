import torch


class SoftUpdate_(torch.autograd.Function):
    """In-place Polyak averaging of an ensemble of target critics.

    target, online: (n_critics, d).  Only the critics with active[i] are moved:
        target[i] <- (1 - tau) * target[i] + tau * online[i]
    """

    @staticmethod
    def forward(ctx, target, online, active, tau=0.005):
        rate = tau * active.to(target.dtype).unsqueeze(1)
        target.mul_(1 - rate).add_(rate * online)
        ctx.mark_dirty(target)
        ctx.save_for_backward(rate)
        return target

    @staticmethod
    def backward(ctx, g):
        (rate,) = ctx.saved_tensors
        return None, g * rate, None, None

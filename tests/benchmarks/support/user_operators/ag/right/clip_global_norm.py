import torch


class ClipTogether(torch.autograd.Function):
    """Scale a list of tensors so that their joint L2 norm is at most ``max_norm``.

    ClipTogether.apply(max_norm, t0, t1, ...) -> tuple of as many tensors
    """

    @staticmethod
    def forward(ctx, max_norm, *tensors):
        total = sum((t * t).sum() for t in tensors).sqrt()
        ctx.max_norm = max_norm
        ctx.save_for_backward(*tensors)
        ctx.active = bool(total > max_norm)
        if not ctx.active:
            return tuple(t.clone() for t in tensors)
        return tuple(t * (max_norm / total) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        if not ctx.active:
            return (None,) + grads
        tensors = ctx.saved_tensors
        total = sum((t * t).sum() for t in tensors).sqrt()
        s = ctx.max_norm / total
        dot = sum((g * t).sum() for g, t in zip(grads, tensors))
        out = [s * g - s * dot / total ** 2 * t for g, t in zip(grads, tensors)]
        return (None, *out)

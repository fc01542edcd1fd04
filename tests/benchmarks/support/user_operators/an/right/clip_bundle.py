import torch


def _norm(ts):
    return torch.stack([t.square().sum() for t in ts]).sum().sqrt()


class _ClipBundle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, limit, *ts):
        ctx.save_for_backward(*ts)
        ctx.limit = limit
        n = _norm(ts)
        if n <= limit:
            return tuple(t.clone() for t in ts)
        return tuple(t * (limit / n) for t in ts)

    @staticmethod
    def backward(ctx, *gs):
        ts = ctx.saved_tensors
        n = _norm(ts)
        if n <= ctx.limit:
            return (None, *gs)
        dots = [(g * t).sum() for g, t in zip(gs, ts)]
        total = torch.stack(dots).sum() / n ** 2
        return (None, *[(g - t * total) * (ctx.limit / n) for g, t in zip(gs, ts)])


def clip_bundle(tensors, limit):
    """scale a list of tensors so that their joint norm is at most limit (differentiable, for meta-learning)"""
    return list(_ClipBundle.apply(float(limit), *tensors))

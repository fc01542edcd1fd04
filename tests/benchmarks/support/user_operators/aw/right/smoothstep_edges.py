import torch


class _SmoothStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x, lo, hi)
        t = ((x - lo) / (hi - lo)).clamp(0, 1)
        return t * t * (3 - 2 * t)

    @staticmethod
    def backward(ctx, g):
        x, lo, hi = ctx.saved_tensors
        w = hi - lo
        t = ((x - lo) / w).clamp(0, 1)
        d = g * 6 * t * (1 - t) / w
        return d.sum_to_size(x.shape), (d * (t - 1)).sum_to_size(lo.shape), (-d * t).sum_to_size(hi.shape)


def smoothstep(x, lo, hi):
    return _SmoothStep.apply(x, lo, hi)

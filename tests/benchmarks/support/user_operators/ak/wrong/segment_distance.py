import torch


class _SegDist(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, a, b):
        ctx.save_for_backward(p, a, b)
        ab = b - a
        t = ((p - a) * ab).sum(-1) / ab.square().sum(-1).clamp(min=1e-12)
        t = t.clamp(0, 1)
        d = p - a - t[..., None] * ab
        ctx.mark_non_differentiable(t)
        return d.square().sum(-1), t

    @staticmethod
    def backward(ctx, g, _):
        p, a, b = ctx.saved_tensors
        ab = b - a
        t = ((p - a) * ab).sum(-1) / ab.square().sum(-1).clamp(min=1e-12)
        t = t[..., None]
        d = 2 * g[..., None] * (p - a - t * ab)
        return d, -(1 - t) * d, -t * d


def segment_distance(points, start, end):
    """Squared distance of points to segments, and where along each segment (0..1) the foot lies.

    All three are (N, 2) or (N, 3).
    """
    return _SegDist.apply(points, start, end)

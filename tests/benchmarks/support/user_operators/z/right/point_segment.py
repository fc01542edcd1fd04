import torch


class PointSegmentDistance(torch.autograd.Function):
    """Distance of points p (N, 3) to segments a-b (N, 3 each)."""

    @staticmethod
    def forward(ctx, p, a, b):
        ab = b - a
        t = (((p - a) * ab).sum(-1) / (ab * ab).sum(-1)).clamp(0, 1)
        r = p - a - t.unsqueeze(-1) * ab
        dist = r.norm(dim=-1)
        ctx.save_for_backward(r, t, dist)
        ctx.set_materialize_grads(False)
        return dist

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        if g is None:
            return None, None, None
        r, t, dist = ctx.saved_tensors
        t = t.unsqueeze(-1)
        n = (g / dist.clamp_min(1e-12)).unsqueeze(-1) * r
        return n, -(1 - t) * n, -t * n

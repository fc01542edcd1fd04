import torch


class _BoxSDF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, half, radius):
        ctx.save_for_backward(p, half)
        q = p.abs() - half
        return q.relu().norm(dim=-1) + q.amax(-1).clamp(max=0) - radius

    @staticmethod
    def backward(ctx, g):
        p, half = ctx.saved_tensors
        q = p.abs() - half
        out = (q > 0).any(-1, keepdim=True)
        ss = q.relu().square().sum(-1, keepdim=True)
        dist = torch.where(out, ss, torch.ones_like(ss)).sqrt()
        side = torch.zeros_like(q).scatter(-1, q.argmax(-1, keepdim=True), 1.0)
        gq = g[..., None] * torch.where(out, q.relu() / dist, side)
        return gq * p.sign(), -gq.sum_to_size(half.shape), None


def box_sdf(points, half_size, radius=0.0):
    """Signed distance of points (N, D) to a (rounded) box about the origin, half_size (D,) or (N, D)."""
    return _BoxSDF.apply(points, half_size, radius)

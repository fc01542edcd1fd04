import torch


class RaySphere(torch.autograd.Function):
    """Nearest hit of rays with one sphere.

    origins, dirs: (N, 3), dirs need not be unit; center: (3,), radius: scalar tensor.
    Returns t (N,), zero where the ray misses, and the mask of hits.
    """

    @staticmethod
    def forward(ctx, origins, dirs, center, radius):
        oc = origins - center
        a = (dirs * dirs).sum(-1)
        b = (oc * dirs).sum(-1)
        disc = b * b - a * ((oc * oc).sum(-1) - radius * radius)
        hit = disc > 0
        t = torch.where(hit, (-b - disc.clamp(min=0).sqrt()) / a, torch.zeros_like(b))
        ctx.save_for_backward(origins, dirs, center, radius, t, hit)
        ctx.mark_non_differentiable(hit)
        return t, hit

    @staticmethod
    def backward(ctx, gt, _):
        origins, dirs, center, radius, t, hit = ctx.saved_tensors
        p = origins - center + t.unsqueeze(-1) * dirs  # from the center to the hit
        pd = (p * dirs).sum(-1)
        u = torch.where(hit, gt / torch.where(hit, pd, torch.ones_like(pd)), torch.zeros_like(gt))
        go = -u.unsqueeze(-1) * p
        gd = go * t.unsqueeze(-1)
        return go, gd, go.sum(0), (u * radius).sum()

import torch
from torch.autograd.function import once_differentiable


class RaySphere(torch.autograd.Function):
    """Depth of the first hit of rays with a sphere; rays that miss get `far`."""

    @staticmethod
    def forward(ctx, origin, direction, center, radius, far=10.0):
        oc = origin - center
        a = (direction * direction).sum(-1)
        b = (oc * direction).sum(-1)
        disc = b * b - a * ((oc * oc).sum(-1) - radius * radius)
        t = (-b - disc.clamp_min(0).sqrt()) / a
        hit = (disc > 0) & (t > 0)
        t = torch.where(hit, t, torch.full_like(t, far))
        ctx.save_for_backward(origin, direction, center, radius, t, hit)
        ctx.mark_non_differentiable(hit)
        return t, hit

    @staticmethod
    @once_differentiable
    def backward(ctx, gt, _):
        origin, direction, center, radius, t, hit = ctx.saved_tensors
        # |o + t d - c|^2 = r^2 differentiated
        p = origin + t.unsqueeze(-1) * direction - center
        w = gt / (p * direction).sum(-1)
        w = torch.where(hit, w, torch.zeros_like(w))
        wp = w.unsqueeze(-1) * p
        return -wp, -t.unsqueeze(-1) * wp, wp.sum(0), (w * radius).sum(), None

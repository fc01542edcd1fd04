import torch


class SOCProjection(torch.autograd.Function):
    """Projection of (t, x) on the second-order cone |x| <= t.   t (B,), x (B, n)"""

    @staticmethod
    def forward(ctx, t, x):
        ctx.save_for_backward(t, x)
        r = x.norm(dim=-1)
        inside, polar = r <= t, r <= -t
        a = 0.5 * (t + r)
        a = torch.where(polar, torch.zeros_like(a), a)
        scale = a / r.clamp_min(1e-30)
        pt = torch.where(inside, t, a)
        px = torch.where(inside.unsqueeze(-1), x, scale.unsqueeze(-1) * x)
        return pt, px

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gt, gx):
        t, x = ctx.saved_tensors
        r = x.norm(dim=-1)
        inside, polar = r <= t.abs(), r <= -t
        n = x / r.clamp_min(1e-30).unsqueeze(-1)
        ratio = t / r.clamp_min(1e-30)
        along = (n * gx).sum(-1)
        ht = 0.5 * (gt + along)
        hx = 0.5 * ((gt - ratio * along).unsqueeze(-1) * n + (1 + ratio).unsqueeze(-1) * gx)
        ht = torch.where(inside, gt, torch.where(polar, torch.zeros_like(ht), ht))
        inside, polar = inside.unsqueeze(-1), polar.unsqueeze(-1)
        hx = torch.where(inside, gx, torch.where(polar, torch.zeros_like(hx), hx))
        return ht, hx

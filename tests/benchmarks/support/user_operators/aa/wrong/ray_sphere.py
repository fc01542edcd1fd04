import torch


class RaySphere(torch.autograd.Function):
    """First intersection of rays with a sphere.

    o, d: (R, 3), d need not be of unit length; c: (3,); r: () -> depth (R,), 0 where the ray misses, and hit (R,) bool
    """

    @staticmethod
    def solve(o, d, c, r):
        oc = o - c
        a = (d * d).sum(-1)
        b = (oc * d).sum(-1)
        disc = b * b - a * ((oc * oc).sum(-1) - r * r)
        hit = disc > 0
        root = torch.where(hit, disc, torch.ones_like(disc)).sqrt()
        near, far = (-b - root) / a, (-b + root) / a
        t = torch.where(near > 0, near, far)
        hit = hit & (t > 0)
        return torch.where(hit, t, torch.zeros_like(t)), hit

    @staticmethod
    def forward(ctx, o, d, c, r):
        t, hit = RaySphere.solve(o, d, c, r)
        ctx.save_for_backward(o, d, c, r)
        ctx.mark_non_differentiable(hit)
        return t, hit

    @staticmethod
    def backward(ctx, g, _):
        o, d, c, r = ctx.saved_tensors
        with torch.no_grad():
            t, hit = RaySphere.solve(o, d, c, r)
        n = o + t[:, None] * d - c
        nd = torch.where(hit, (n * d).sum(-1), torch.ones_like(t))
        s = torch.where(hit, g / nd, torch.zeros_like(g))
        go = -s[:, None] * n
        return go, go * t[:, None], -go.sum(0), (s * r).sum()

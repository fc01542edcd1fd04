import torch


class RadialDistortion(torch.autograd.Function):
    """Brown-Conrady radial lens distortion of normalised points (..., 2) by k = (k1, k2)."""

    @staticmethod
    def forward(ctx, pts, k):
        ctx.save_for_backward(pts, k)
        r2 = (pts * pts).sum(-1, keepdim=True)
        return pts * (1 + k[0] * r2 + k[1] * r2 * r2)

    @staticmethod
    def backward(ctx, g):
        pts, k = ctx.saved_tensors
        r2 = (pts * pts).sum(-1, keepdim=True)
        f = 1 + k[0] * r2 + k[1] * r2 * r2
        gf = (g * pts).sum(-1, keepdim=True)
        g_pts = g * f + 2 * pts * gf * (k[0] + k[1] * r2)
        g_k = torch.stack([(gf * r2).sum(), (gf * r2 * r2).sum()])
        return g_pts, g_k

import torch
from torch.autograd import Function


class QuatRotate(Function):
    """Rotate points by quaternions (w, x, y, z).  q: (B, 4) need not have unit length, pts: (B, N, 3)."""

    @staticmethod
    def forward(ctx, q, pts):
        assert not (q.is_complex() or pts.is_complex()), "real tensors only"
        assert q.shape[-1] == 4 and pts.shape[-1] == 3 and q.shape[0] == pts.shape[0]
        ctx.save_for_backward(q, pts)
        u = q / q.norm(dim=-1, keepdim=True)
        w, r = u[:, None, :1], u[:, None, 1:].expand_as(pts)
        t = 2 * torch.cross(r, pts, dim=-1)
        return pts + w * t + torch.cross(r, t, dim=-1)

    @staticmethod
    def backward(ctx, g):
        q, pts = ctx.saved_tensors
        n = q.norm(dim=-1, keepdim=True)
        u = q / n
        w, r = u[:, None, :1], u[:, None, 1:].expand_as(pts)

        def d(a, b):
            return (a * b).sum(-1, keepdim=True)

        t = 2 * torch.cross(r, g, dim=-1)
        g_pts = g - w * t + torch.cross(r, t, dim=-1)
        g_w = 2 * d(g, torch.cross(r, pts, dim=-1))
        g_r = 2 * w * torch.cross(pts, g, dim=-1) + 2 * (g * d(r, pts) + pts * d(g, r) - 2 * r * d(g, pts))
        g_u = torch.cat([g_w, g_r], -1).sum(1)
        g_q = (g_u - u * d(u, g_u)) / n
        return g_q, g_pts

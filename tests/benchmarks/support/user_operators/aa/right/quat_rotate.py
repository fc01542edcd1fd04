import torch


class QuaternionApply(torch.autograd.Function):
    """Rotates points by quaternions given as (w, x, y, z).

    The quaternions need not be of unit length; they are normalised here.
    q: B x 4, pts: B x N x 3 -> B x N x 3
    """

    @staticmethod
    def forward(ctx, q, pts):
        ctx.save_for_backward(q, pts)
        qn = q / q.norm(dim=-1, keepdim=True)
        w = qn[:, None, :1]
        u = qn[:, None, 1:].expand_as(pts)
        t = 2 * torch.linalg.cross(u, pts)
        return pts + w * t + torch.linalg.cross(u, t)

    @staticmethod
    def backward(ctx, g):
        q, pts = ctx.saved_tensors
        n = q.norm(dim=-1, keepdim=True)
        qn = q / n
        w = qn[:, None, :1]
        u = qn[:, None, 1:].expand_as(pts)
        dot = lambda a, b: (a * b).sum(-1, keepdim=True)

        gw = 2 * dot(g, torch.linalg.cross(u, pts)).sum(1)
        gu = 2 * w * torch.linalg.cross(pts, g)
        gu = gu + 2 * (g * dot(u, pts) + pts * dot(u, g) - 2 * u * dot(g, pts))
        gq = torch.cat([gw, gu.sum(1)], -1)
        gq = (gq - qn * dot(qn, gq)) / n

        s = 2 * torch.linalg.cross(u, g)
        gp = g - w * s + torch.linalg.cross(u, s)
        return gq, gp

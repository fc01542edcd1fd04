import torch


def cross(a, b):
    return torch.linalg.cross(a, b, dim=-1)


class QuatRotate(torch.autograd.Function):
    """q (B, 4) as w, x, y, z, need not be unit; p (B, N, 3) -> (B, N, 3)"""

    @staticmethod
    def forward(ctx, q, p):
        ctx.save_for_backward(q, p)
        qn = q / q.norm(dim=-1, keepdim=True)
        w, u = qn[:, None, :1], qn[:, None, 1:].expand_as(p)
        c = cross(u, p)
        return p + 2 * w * c + 2 * cross(u, c)

    @staticmethod
    def backward(ctx, g):
        q, p = ctx.saved_tensors
        norm = q.norm(dim=-1, keepdim=True)
        qn = q / norm
        w, u = qn[:, None, :1], qn[:, None, 1:].expand_as(p)
        c = cross(u, p)
        gc = 2 * w * g + 2 * cross(g, u)
        gu = 2 * cross(c, g) + cross(p, gc)
        gw = 2 * (g * c).sum(-1, keepdim=True)
        gqn = torch.cat([gw, gu], -1).sum(1)
        gq = (gqn - qn * (qn * gqn).sum(-1, keepdim=True)) / norm
        return gq, g + cross(gc, u)

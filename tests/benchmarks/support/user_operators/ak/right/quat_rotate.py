import torch


class QuatRotate(torch.autograd.Function):

    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        n = q / q.norm(dim=-1, keepdim=True)
        w, r = n[..., :1], n[..., 1:]
        c = torch.linalg.cross(r, v)
        return v + 2 * (w * c + torch.linalg.cross(r, c))

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        length = q.norm(dim=-1, keepdim=True)
        n = q / length
        w, r = n[..., :1], n[..., 1:]
        c = torch.linalg.cross(r, g)
        gv = g + 2 * (torch.linalg.cross(r, c) - w * c)

        gw = 2 * (g * torch.linalg.cross(r, v)).sum(-1, keepdim=True)
        rv = (r * v).sum(-1, keepdim=True)
        gr = (g * r).sum(-1, keepdim=True)
        gv_ = (g * v).sum(-1, keepdim=True)
        g_r = 2 * (w * torch.linalg.cross(v, g) + rv * g + gr * v - 2 * gv_ * r)
        gn = torch.cat([gw, g_r], dim=-1)
        gq = (gn - n * (gn * n).sum(-1, keepdim=True)) / length
        return gq, gv

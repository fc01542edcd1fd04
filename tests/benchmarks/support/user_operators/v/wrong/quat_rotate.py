import torch


class QuatRotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, v):
        ctx.save_for_backward(q, v)
        w, u = q[..., :1], q[..., 1:]
        t = 2 * torch.cross(u, v, dim=-1)
        return v + w * t + torch.cross(u, t, dim=-1)

    @staticmethod
    def backward(ctx, g):
        q, v = ctx.saved_tensors
        w, u = q[..., :1], q[..., 1:]
        uv = torch.cross(u, v, dim=-1)
        gw = 2 * (g * uv).sum(-1, keepdim=True)
        gt = w * g + torch.cross(u, g, dim=-1)
        gu = 2 * (torch.cross(v, gt, dim=-1) + torch.cross(uv, g, dim=-1))
        gv = g + 2 * torch.cross(gt, u, dim=-1)
        return torch.cat([gw, gu], -1), gv

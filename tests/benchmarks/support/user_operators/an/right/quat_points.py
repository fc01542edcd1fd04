import torch

cross = torch.linalg.cross


class RotatePoints(torch.autograd.Function):
    # q (B, 4) wxyz (assumed unit, not normalised here), pts (B, N, 3)

    @staticmethod
    def forward(ctx, q, pts):
        ctx.save_for_backward(q, pts)
        w, u = q[:, None, :1], q[:, None, 1:].expand_as(pts)
        uv = cross(u, pts)
        return pts + 2 * w * uv + 2 * cross(u, uv)

    @staticmethod
    def backward(ctx, g):
        q, pts = ctx.saved_tensors
        n = pts.shape[1]
        qf = q.repeat_interleave(n, 0)
        w, u = qf[:, :1], qf[:, 1:]
        gf = g.reshape(-1, 3)
        vf = pts.reshape(-1, 3)
        uxg = cross(u, gf)
        gp = gf - 2 * w * uxg + 2 * cross(u, uxg)
        gw = 2 * (gf * cross(u, vf)).sum(-1, keepdim=True)
        gu = 2 * w * cross(vf, gf)
        gu = gu + 2 * ((gf * u).sum(-1, keepdim=True) * vf + (u * vf).sum(-1, keepdim=True) * gf
                       - 2 * (gf * vf).sum(-1, keepdim=True) * u)
        gq = torch.cat([gw, gu], -1).reshape(-1, n, 4).sum(1)
        return gq, gp.reshape(pts.shape)

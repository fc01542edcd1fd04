import torch


class RadialPinhole(torch.autograd.Function):
    """points (N, 3) in the camera frame, focal (2,), centre (2,), dist (2,) = k1, k2 -> uv (N, 2), valid (N,)"""

    @staticmethod
    def forward(ctx, points, focal, centre, dist, near=1e-2):
        valid = points[:, 2] > near
        z = torch.where(valid, points[:, 2], torch.ones_like(points[:, 2]))
        xy = points[:, :2] / z[:, None]
        r2 = (xy * xy).sum(-1, keepdim=True)
        uv = focal * xy * (1 + dist[0] * r2 + dist[1] * r2 * r2) + centre
        uv = uv * valid[:, None]
        ctx.save_for_backward(points, focal, dist, valid)
        ctx.mark_non_differentiable(valid)
        return uv, valid

    @staticmethod
    def backward(ctx, g, _):
        points, focal, dist, valid = ctx.saved_tensors
        g = g * valid[:, None]
        z = torch.where(valid, points[:, 2], torch.ones_like(points[:, 2]))[:, None]
        xy = points[:, :2] / z
        r2 = (xy * xy).sum(-1, keepdim=True)
        d = 1 + dist[0] * r2 + dist[1] * r2 * r2
        gd = (g * focal * xy).sum(-1, keepdim=True)
        gxy = g * focal * d + 2 * xy * gd * (dist[0] + 2 * dist[1] * r2)
        gp = torch.cat([gxy / z, -(gxy * xy).sum(-1, keepdim=True) / z], -1)
        gk = torch.stack([(gd * r2).sum(), (gd * r2 * r2).sum()])
        return gp, (g * xy * d).sum(0), g.sum(0), gk, None

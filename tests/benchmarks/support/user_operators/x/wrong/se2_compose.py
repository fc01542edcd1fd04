import torch


class SE2Compose(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, q):
        # poses (..., 3) = x, y, theta
        ctx.save_for_backward(p, q)
        c, s = p[..., 2].cos(), p[..., 2].sin()
        return torch.stack((
            p[..., 0] + c * q[..., 0] - s * q[..., 1],
            p[..., 1] + s * q[..., 0] + c * q[..., 1],
            p[..., 2] + q[..., 2],
        ), -1)

    @staticmethod
    def backward(ctx, g):
        p, q = ctx.saved_tensors
        c, s = p[..., 2].cos(), p[..., 2].sin()
        gx, gy, gt = g.unbind(-1)
        qx, qy, _ = q.unbind(-1)
        gtheta = gt + gx * (-s * qx - c * qy) + gy * (c * qx - s * qy)
        gp = torch.stack((gx, gy, gt), -1)
        gq = torch.stack((c * gx + s * gy, c * gy - s * gx, gt), -1)
        return gp.sum_to_size(p.shape), gq.sum_to_size(q.shape)

import torch
from torch.autograd.function import once_differentiable


class QuatToRot(torch.autograd.Function):
    """(N, 4) quaternions (w, x, y, z), of any length but zero -> (N, 3, 3)"""

    @staticmethod
    def forward(ctx, quat):
        norm = quat.norm(dim=1, keepdim=True)
        q = quat / norm
        ctx.save_for_backward(q, norm)
        w, x, y, z = q.unbind(1)
        rows = [
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
        ]
        return torch.stack(rows, 1).reshape(-1, 3, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        q, norm = ctx.saved_tensors
        w, x, y, z = q.unbind(1)
        sxy, sxz, syz = g[:, 0, 1] + g[:, 1, 0], g[:, 0, 2] + g[:, 2, 0], g[:, 1, 2] + g[:, 2, 1]
        axy, axz, ayz = g[:, 1, 0] - g[:, 0, 1], g[:, 0, 2] - g[:, 2, 0], g[:, 2, 1] - g[:, 1, 2]
        gw = 2 * (z * axy + y * axz + x * ayz)
        gx = 2 * (y * sxy + z * sxz + w * ayz) - 4 * x * (g[:, 1, 1] + g[:, 2, 2])
        gy = 2 * (x * sxy + z * syz + w * axz) - 4 * y * (g[:, 0, 0] + g[:, 2, 2])
        gz = 2 * (x * sxz + y * syz + w * axy) - 4 * z * (g[:, 0, 0] + g[:, 1, 1])
        gq = torch.stack([gw, gx, gy, gz], 1)
        gq = gq - q * (gq * q).sum(1, keepdim=True)
        return gq / norm

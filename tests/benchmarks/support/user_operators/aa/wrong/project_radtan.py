from typing import Optional

import torch
from torch import Tensor


class _RadTanProject(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X, K, D):
        ctx.save_for_backward(X, K, D)
        x = X[:, 0] / X[:, 2]
        y = X[:, 1] / X[:, 2]
        if D is not None:
            k1, k2, p1, p2 = D
            r2 = x * x + y * y
            radial = 1 + k1 * r2 + k2 * r2 * r2
            xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
            yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
        else:
            xd, yd = x, y
        fx, fy, cx, cy = K
        return torch.stack([fx * xd + cx, fy * yd + cy], 1)

    @staticmethod
    def backward(ctx, g):
        X, K, D = ctx.saved_tensors
        z = X[:, 2]
        x, y = X[:, 0] / z, X[:, 1] / z
        fx, fy = K[0], K[1]
        gxd, gyd = g[:, 0] * fx, g[:, 1] * fy
        gD = None
        if D is not None:
            k1, k2, p1, p2 = D
            r2 = x * x + y * y
            radial = 1 + k1 * r2 + k2 * r2 * r2
            dradial = 2 * (k1 + 2 * k2 * r2)
            xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
            yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
            j00 = radial + x * x * dradial + 2 * p1 * y + 6 * p2 * x
            j01 = x * y * dradial + 2 * p1 * x + 2 * p2 * y
            j11 = radial + y * y * dradial + 2 * p1 * y + 2 * p2 * x
            gx = j00 * gxd + j01 * gyd
            gy = j01 * gxd + j11 * gyd
            gD = torch.stack([
                (r2 * (x * gxd + y * gyd)).sum(),
                (r2 * r2 * (x * gxd + y * gyd)).sum(),
                (2 * x * y * gxd + (r2 + 2 * y * y) * gyd).sum(),
                ((r2 + 2 * x * x) * gxd + 2 * x * y * gyd).sum(),
            ])
        else:
            xd, yd = x, y
            gx, gy = gxd, gyd
        gX = torch.stack([gx / z, gy / z, -(x * gx + y * gy) / z], 1)
        gK = torch.stack([(g[:, 0] * xd).sum(), (g[:, 1] * yd).sum(), g[:, 0].sum(), g[:, 1].sum()])
        return gX, gK, gD


def project_radtan(points: Tensor, intrinsics: Tensor, distortion: Optional[Tensor] = None) -> Tensor:
    """Project camera-frame points (N, 3), z > 0, to pixels (N, 2).

    intrinsics: (fx, fy, cx, cy); distortion: (k1, k2, p1, p2) or None for a pinhole.
    """
    return _RadTanProject.apply(points, intrinsics, distortion)

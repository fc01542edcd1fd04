import torch


class PinholeProject(torch.autograd.Function):
    """Project camera-frame points with a pinhole model and one radial distortion coefficient.

    points: (N, 3) with positive depth
    intrinsics: (4,) fx, fy, cx, cy
    k1: () tensor or None
    Returns pixel coordinates (N, 2) and depth (N,).
    """

    @staticmethod
    def forward(ctx, points, intrinsics, k1=None):
        if points.dim() != 2 or points.size(1) != 3 or intrinsics.shape != (4,):
            raise ValueError("points must be (N, 3) and intrinsics (4,)")
        if k1 is not None and k1.dim():
            raise ValueError("k1 must be a scalar tensor")
        if (points[:, 2] <= 0).any():
            raise ValueError("points behind the camera")
        ctx.save_for_backward(points, intrinsics, k1)
        fx, fy, cx, cy = intrinsics
        depth = points[:, 2].clone()
        x, y = points[:, 0] / depth, points[:, 1] / depth
        f = 1 + (0 if k1 is None else k1 * (x * x + y * y))
        return torch.stack([fx * x * f + cx, fy * y * f + cy], 1), depth

    @staticmethod
    def backward(ctx, g_uv, g_depth):
        points, intrinsics, k1 = ctx.saved_tensors
        fx, fy, _, _ = intrinsics
        depth = points[:, 2]
        x, y = points[:, 0] / depth, points[:, 1] / depth
        r2 = x * x + y * y
        has_k = k1 is not None
        k1 = k1 if has_k else torch.zeros_like(fx)
        f = 1 + k1 * r2
        gu, gv = g_uv.unbind(1)
        g_xd, g_yd = gu * fx, gv * fy
        g_f = g_xd * x + g_yd * y
        g_xn = g_xd * f + 2 * x * g_f * k1
        g_yn = g_yd * f + 2 * y * g_f * k1
        g_points = torch.stack([g_xn / depth, g_yn / depth, g_depth - (g_xn * x + g_yn * y) / depth], 1)
        g_intr = torch.stack([(gu * x * f).sum(), (gv * y * f).sum(), gu.sum(), gv.sum()])
        return g_points, g_intr, (g_f * r2).sum() if has_k else None

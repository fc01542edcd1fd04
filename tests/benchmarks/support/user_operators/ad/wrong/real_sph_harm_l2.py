import math
import torch


class SphericalHarmonicsL2(torch.autograd.Function):
    """Real l=2 spherical harmonics of edge vectors, order (xy, yz, 3z2-r2, xz, x2-y2).

    With normalize=True the vectors are first scaled to unit length.
    normalization: 'integral' or 'component' (|Y|^2 = 5).
    """

    @staticmethod
    def forward(ctx, vec, normalize=True, normalization="component"):
        r = vec.norm(dim=-1, keepdim=True)
        u = vec / r if normalize else vec
        x, y, z = u.unbind(-1)
        s3 = math.sqrt(3.0)
        out = torch.stack([s3 * x * y, s3 * y * z, z * z - 0.5 * (x * x + y * y), s3 * x * z,
                           s3 / 2 * (x * x - y * y)], -1)
        c = math.sqrt(5.0) if normalization == "component" else math.sqrt(5 / (4 * math.pi))
        ctx.save_for_backward(u, r)
        ctx.c, ctx.normalize = c, normalize
        return c * out

    @staticmethod
    def backward(ctx, grad):
        u, r = ctx.saved_tensors
        x, y, z = u.unbind(-1)
        s3 = math.sqrt(3.0)
        a, b, c, d, e = (ctx.c * grad).unbind(-1)
        gx = s3 * (a * y + d * z + e * x) - c * x
        gy = s3 * (a * x + b * z - e * y) - c * y
        gz = s3 * (b * y + d * x) + 2 * c * z
        gu = torch.stack([gx, gy, gz], -1)
        if ctx.normalize:
            gu = (gu - (gu * u).sum(-1, keepdim=True) * u) / r
        return gu, None

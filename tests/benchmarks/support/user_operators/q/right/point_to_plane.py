import torch


class PointToPlane(torch.autograd.Function):
    """Point-to-plane ICP residuals n . (R p + t - q) for small rotations xi = (rx, ry, rz, tx, ty, tz).

    xi (6,), src (N, 3), dst (N, 3), normal (N, 3) -> residuals (N,);  R = I + [r]x
    """

    @staticmethod
    def forward(ctx, xi, src, dst, normal, weights=None):
        assert xi.shape == (6,) and src.shape == dst.shape == normal.shape
        assert not any(t.is_complex() for t in (xi, src, dst, normal))
        r, t = xi[:3], xi[3:]
        moved = src + torch.linalg.cross(r.expand_as(src), src) + t
        res = ((moved - dst) * normal).sum(1)
        assert weights is None or weights.dtype == res.dtype and weights.shape == res.shape
        ctx.save_for_backward(xi, src, dst, normal, weights)
        return res if weights is None else weights * res

    @staticmethod
    def backward(ctx, g):
        xi, src, dst, normal, weights = ctx.saved_tensors
        r, t = xi[:3].expand_as(src), xi[3:]
        diff = src + torch.linalg.cross(r, src) + t - dst
        gw = None
        if weights is not None:
            gw = g * (diff * normal).sum(1)
            g = g * weights
        gn = g[:, None] * normal
        g_xi = torch.cat([torch.linalg.cross(src, gn).sum(0), gn.sum(0)])
        g_src = gn + torch.linalg.cross(gn, r)
        return g_xi, g_src, -gn, g[:, None] * diff, gw

import torch


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _weights(p, tri):
    a, b, c = tri.unbind(-2)
    area = _cross(b - a, c - a)
    return torch.stack([_cross(b - p, c - p), _cross(c - p, a - p), _cross(a - p, b - p)], -1) / area[..., None]


class BarycentricInterp(torch.autograd.Function):
    """Interpolate vertex values (N, 3, F) of 2-D triangles (N, 3, 2) at points p (N, 2)."""

    @staticmethod
    def forward(ctx, p, tri, values):
        assert p.shape[-1] == 2 and tri.shape[-2:] == (3, 2)
        assert len(p) == len(tri) == len(values) and values.shape[1] == 3
        assert not (p.is_complex() or tri.is_complex() or values.is_complex())
        ctx.save_for_backward(p, tri, values)
        return (_weights(p, tri)[..., None] * values).sum(-2)

    @staticmethod
    def backward(ctx, g):
        p, tri, values = ctx.saved_tensors
        w = _weights(p, tri)
        g_values = w[..., None] * g[:, None, :]
        a, b, c = tri.unbind(-2)
        area = _cross(b - a, c - a)[..., None]
        gw = (values * g[:, None, :]).sum(-1)
        # grad of w_k with respect to p: the edge opposite of k, turned by a quarter
        edges = torch.stack([c - b, a - c, b - a], -2)
        dw = torch.stack([-edges[..., 1], edges[..., 0]], -1) / area[..., None]
        g_p = (gw[..., None] * dw).sum(-2)
        # moving a vertex moves the interpolant by -w_k times its slope
        g_tri = -gw[..., None] * dw
        return g_p, g_tri, g_values

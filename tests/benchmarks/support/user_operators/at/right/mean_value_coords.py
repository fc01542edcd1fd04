import torch
from torch.autograd import Function


class MeanValueWeights(Function):
    """Unnormalised mean value weights (Floater 2003) of points inside a polygon.
    poly (n, 2) counter-clockwise, x (q, 2) -> (q, n)"""

    @staticmethod
    def _parts(poly, x):
        d = poly - x[:, None]
        dn = d.roll(-1, 1)
        r = d.norm(dim=-1)
        rn = r.roll(-1, 1)
        cross = d[..., 0] * dn[..., 1] - d[..., 1] * dn[..., 0]
        T = (r * rn - (d * dn).sum(-1)) / cross          # tan(alpha_i / 2)
        return d, dn, r, rn, cross, T

    @staticmethod
    def forward(ctx, poly, x):
        ctx.save_for_backward(poly, x)
        d, dn, r, rn, cross, T = MeanValueWeights._parts(poly, x)
        return (T + T.roll(1, 1)) / r

    @staticmethod
    def backward(ctx, grad):
        poly, x = ctx.saved_tensors
        d, dn, r, rn, cross, T = MeanValueWeights._parts(poly, x)
        w = (T + T.roll(1, 1)) / r
        gs = grad / r
        gT = gs + gs.roll(-1, 1)
        gN = gT / cross
        gC = -gN * T
        gr = -gs * w + gN * rn + (gN * r).roll(1, 1)
        gd = gr[..., None] * d / r[..., None] - gN[..., None] * dn
        gd = gd + gC[..., None] * torch.stack([dn[..., 1], -dn[..., 0]], -1)
        gdn = gC[..., None] * torch.stack([-d[..., 1], d[..., 0]], -1) - gN[..., None] * d
        gd = gd + gdn.roll(1, 1)
        return gd.sum(0), -gd.sum(1)


def mean_value_coordinates(poly, x):
    w = MeanValueWeights.apply(poly, x)
    return w / w.sum(-1, keepdim=True)

import torch


def _dot(a, b):
    return (a * b).sum(-1, keepdim=True)


def closest_params(w, d1, d2):
    a, b, c = _dot(d1, d1), _dot(d1, d2), _dot(d2, d2)
    d, e = _dot(d1, w), _dot(d2, w)
    D = a * c - b * b
    return (b * e - c * d) / D, (a * e - b * d) / D, (a, b, c, d, e, D)


class MidpointTriangulate(torch.autograd.Function):
    """Midpoint of two (non parallel) rays o + s d and their squared gap.

    Parameters
    ----------
    o1, d1, o2, d2 : (B, 3); directions need not be of unit length

    Returns
    -------
    mid : (B, 3)
    gap2 : (B,)
    """

    @staticmethod
    def forward(ctx, o1, d1, o2, d2):
        ctx.save_for_backward(o1, d1, o2, d2)
        s, t, _ = closest_params(o1 - o2, d1, d2)
        p1, p2 = o1 + s * d1, o2 + t * d2
        return (p1 + p2) / 2, ((p1 - p2) ** 2).sum(-1)

    @staticmethod
    def backward(ctx, gm, gg):
        o1, d1, o2, d2 = ctx.saved_tensors
        w = o1 - o2
        s, t, (a, b, c, d, e, D) = closest_params(w, d1, d2)
        res = 2 * gg.unsqueeze(-1) * (w + s * d1 - t * d2)
        g1, g2 = gm / 2 + res, gm / 2 - res
        gs, gt = _dot(g1, d1), _dot(g2, d2)
        gD = -(gs * s + gt * t) / D
        ga = gt * e / D + c * gD
        gb = (gs * e - gt * d) / D - 2 * b * gD
        gc = a * gD - gs * d / D
        gd, ge = -(gs * c + gt * b) / D, (gs * b + gt * a) / D
        gw = gd * d1 + ge * d2
        return (g1 + gw, s * g1 + 2 * ga * d1 + gb * d2 + gd * w,
                g2 - gw, t * g2 + 2 * gc * d2 + gb * d1 + ge * w)

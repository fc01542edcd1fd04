import math

import torch


class Gnomonic(torch.autograd.Function):
    """Gnomonic (tangent-plane) projection of sky coordinates.

    Parameters
    ----------
    ra, dec : Tensor (n,)
        Less than 90 degrees from the centre.
    ra0, dec0 : Tensor, 0-dim
        Tangent point.
    degrees : bool
        Whether all four angles are in degrees; standard coordinates are always in radians.

    Returns
    -------
    xi, eta : Tensor (n,)
    """

    @staticmethod
    def forward(ctx, ra, dec, ra0, dec0, degrees=False):
        ctx.save_for_backward(ra, dec, ra0, dec0)
        ctx.unit = math.pi / 180 if degrees else 1.0
        d, dec, dec0 = (ra - ra0) * ctx.unit, dec * ctx.unit, dec0 * ctx.unit
        c = dec0.sin() * dec.sin() + dec0.cos() * dec.cos() * d.cos()
        return dec.cos() * d.sin() / c, (dec0.cos() * dec.sin() - dec0.sin() * dec.cos() * d.cos()) / c

    @staticmethod
    def backward(ctx, g_xi, g_eta):
        ra, dec, ra0, dec0 = ctx.saved_tensors
        d, dec, dec0 = (ra - ra0) * ctx.unit, dec * ctx.unit, dec0 * ctx.unit
        sd, cd, s0, c0, sa, ca = dec.sin(), dec.cos(), dec0.sin(), dec0.cos(), d.sin(), d.cos()
        c = s0 * sd + c0 * cd * ca
        up = c0 * sd - s0 * cd * ca
        xi, eta = cd * sa / c, up / c
        gx, gy = ctx.unit * g_xi / c, ctx.unit * g_eta / c
        gc = -(gx * xi + gy * eta)
        g_ra = gx * cd * ca + gy * s0 * cd * sa - gc * c0 * cd * sa
        g_dec = -gx * sd * sa + gy * (c0 * cd + s0 * sd * ca) + gc * (s0 * cd - c0 * sd * ca)
        g_dec0 = -gy * c + gc * up
        return g_ra, g_dec, -g_ra.sum(), g_dec0.sum(), None

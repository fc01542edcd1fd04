import math

import torch


class SPGR(torch.autograd.Function):
    """Spoiled gradient echo at several flip angles.

    Args:
        m0, t1: maps of one shape (t1 in s)
        flips: list of flip angles in degrees
        tr: repetition time in s
    Returns:
        (len(flips), *m0.shape)
    """

    @staticmethod
    def forward(ctx, m0, t1, flips, tr):
        ctx.save_for_backward(m0, t1)
        ctx.flips, ctx.tr = flips, tr
        e1 = torch.exp(-tr / t1)
        out = []
        for deg in flips:
            a = math.radians(deg)
            out.append(m0 * math.sin(a) * (1 - e1) / (1 - math.cos(a) * e1))
        return torch.stack(out)

    @staticmethod
    def backward(ctx, grad):
        m0, t1 = ctx.saved_tensors
        e1 = torch.exp(-ctx.tr / t1)
        g_m0 = torch.zeros_like(m0)
        g_e1 = torch.zeros_like(m0)
        for deg, g in zip(ctx.flips, grad):
            sa, ca = math.sin(math.radians(deg)), math.cos(math.radians(deg))
            den = 1 - ca * e1
            g_m0 = g_m0 + g * sa * (1 - e1) / den
            g_e1 = g_e1 + g * m0 * sa * (ca - 1) / den**2
        return g_m0, g_e1 * e1 * ctx.tr / t1**2, None, None

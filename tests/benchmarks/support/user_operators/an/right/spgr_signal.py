import torch


class SPGR(torch.autograd.Function):
    """Steady-state spoiled gradient echo.

    Args:
        m0, t1, t2s: (P,) tissue maps (ms)
        flip: (F,) flip angles in rad, not differentiated
        tr, te: sequence timing in ms
    Returns: (P, F)
    """

    @staticmethod
    def forward(ctx, m0, t1, t2s, flip, tr, te):
        ctx.save_for_backward(m0, t1, t2s, flip)
        ctx.tr, ctx.te = tr, te
        e1 = torch.exp(-tr / t1)[:, None]
        e2 = torch.exp(-te / t2s)[:, None]
        return m0[:, None] * e2 * torch.sin(flip) * (1 - e1) / (1 - torch.cos(flip) * e1)

    @staticmethod
    def backward(ctx, g):
        m0, t1, t2s, flip = ctx.saved_tensors
        e1 = torch.exp(-ctx.tr / t1)[:, None]
        e2 = torch.exp(-ctx.te / t2s)[:, None]
        s, c = torch.sin(flip), torch.cos(flip)
        steady = s * (1 - e1) / (1 - c * e1)
        d_steady = s * (c - 1) / (1 - c * e1) ** 2
        g_m0 = (g * e2 * steady).sum(1)
        g_e1 = (g * m0[:, None] * e2 * d_steady).sum(1)
        g_t1 = g_e1 * e1[:, 0] * ctx.tr / t1 ** 2
        g_t2 = g_m0 * m0 * ctx.te / t2s ** 2
        return g_m0, g_t1, g_t2, None, None, None

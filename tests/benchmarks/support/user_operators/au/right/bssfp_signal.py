import torch


class _BSSFP(torch.autograd.Function):
    @staticmethod
    def parts(t1, t2, flip, tr):
        e1, e2 = torch.exp(-tr / t1)[..., None], torch.exp(-tr / t2)[..., None]
        c, s = torch.cos(flip), torch.sin(flip)
        den = 1 - (e1 - e2) * c - e1 * e2
        return e1, e2, c, s, den, s * (1 - e1) / den

    @staticmethod
    def forward(ctx, m0, t1, t2, flip, tr, te):
        ctx.save_for_backward(m0, t1, t2, flip)
        ctx.tr, ctx.te = tr, te
        shape = _BSSFP.parts(t1, t2, flip, tr)[-1]
        return (m0 * torch.exp(-te / t2))[..., None] * shape

    @staticmethod
    def backward(ctx, g):
        m0, t1, t2, flip = ctx.saved_tensors
        tr, te = ctx.tr, ctx.te
        e1, e2, c, s, den, shape = _BSSFP.parts(t1, t2, flip, tr)
        decay = torch.exp(-te / t2)
        scale = (m0 * decay)[..., None]
        g_scale = (g * shape).sum(-1)
        gs = g * scale / den
        g_e1 = (gs * (-s + shape * (c + e2))).sum(-1)
        g_e2 = (gs * shape * (e1 - c)).sum(-1)
        g_flip = gs * (c * (1 - e1) - shape * (e1 - e2) * s)
        g_t1 = g_e1 * e1[..., 0] * tr / t1**2
        g_t2 = g_e2 * e2[..., 0] * tr / t2**2 + g_scale * m0 * decay * te / t2**2
        return g_scale * decay, g_t1, g_t2, g_flip.reshape(-1, flip.numel()).sum(0), None, None


def bssfp_signal(m0, t1, t2, flip, tr=5.0, te=2.5):
    """On-resonant balanced SSFP. m0, t1, t2 maps (...), flip angles (A,) [rad], times [ms] -> (..., A)"""
    return _BSSFP.apply(m0, t1, t2, flip, tr, te)

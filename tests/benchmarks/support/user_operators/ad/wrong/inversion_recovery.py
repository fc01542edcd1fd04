import torch


class _IRSignal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, m0, t1, ti, eff, magnitude):
        e = torch.exp(-ti.unsqueeze(0) / t1.unsqueeze(1))
        s = m0.unsqueeze(1) * (1 - 2 * eff * e)
        ctx.save_for_backward(m0, t1, ti, e, s)
        ctx.eff, ctx.magnitude = eff, magnitude
        return s.abs() if magnitude else s

    @staticmethod
    def backward(ctx, g):
        m0, t1, ti, e, s = ctx.saved_tensors
        if ctx.magnitude:
            g = g * s.sign()
        gm0 = (g * (1 - 2 * e)).sum(1)
        gt1 = -(g * 2 * ctx.eff * e * ti).sum(1) * m0 / t1 ** 2
        gti = (g * 2 * ctx.eff * e * (m0 / t1).unsqueeze(1)).sum(0)
        return gm0, gt1, gti, None, None


def inversion_recovery(m0, t1, ti, eff: float = 1.0, magnitude: bool = True):
    """Signal of voxels (P,) at inversion times ti (K,), result (P, K); ti and t1 in the same unit."""
    return _IRSignal.apply(m0, t1, ti, eff, magnitude)

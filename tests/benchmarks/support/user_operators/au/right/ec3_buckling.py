import torch

IMPERFECTION = {"a0": 0.13, "a": 0.21, "b": 0.34, "c": 0.49, "d": 0.76}


class BucklingResistance(torch.autograd.Function):
    """EN 1993-1-1 flexural buckling: chi(slenderness) * squash load, chi = 1 up to slenderness 0.2.

    slenderness, squash (N,); curve one of a0, a, b, c, d
    """

    @staticmethod
    def _chi(lam, alpha):
        phi = 0.5 * (1 + alpha * (lam - 0.2) + lam**2)
        root = torch.sqrt(phi**2 - lam**2)
        return phi, root, 1 / (phi + root)

    @staticmethod
    def forward(ctx, slenderness, squash, curve):
        ctx.save_for_backward(slenderness, squash)
        ctx.alpha = IMPERFECTION[curve]
        chi = BucklingResistance._chi(slenderness, ctx.alpha)[2]
        return squash * torch.where(slenderness > 0.2, chi, torch.ones_like(chi))

    @staticmethod
    def backward(ctx, g):
        lam, squash = ctx.saved_tensors
        stocky = lam <= 0.2
        phi, root, chi = BucklingResistance._chi(lam, ctx.alpha)
        dphi = 0.5 * (ctx.alpha + 2 * lam)
        dchi = -(chi**2) * (dphi + (phi * dphi - lam) / root)
        dchi = dchi.masked_fill(stocky, 0.0)
        chi = chi.masked_fill(stocky, 1.0)
        return g * squash * dchi, g * chi, None

import torch


class NelsonSiegel(torch.autograd.Function):
    """Yields at maturities m (M,) > 0 for factors beta (B, 3) = level, slope, curvature and decay tau (B,)."""

    @staticmethod
    def loadings(tau, m):
        x = m / tau[:, None]
        e = torch.exp(-x)
        l1 = -torch.expm1(-x) / x
        return x, e, l1

    @staticmethod
    def forward(ctx, beta, tau, m):
        if beta.is_complex() or tau.is_complex() or m.is_complex():
            raise TypeError
        if beta.shape != (tau.numel(), 3) or m.dim() != 1:
            raise ValueError("beta (B, 3), tau (B,), m (M,)")
        ctx.save_for_backward(beta, tau, m)
        _, e, l1 = NelsonSiegel.loadings(tau, m)
        return beta[:, :1] + beta[:, 1:2] * l1 + beta[:, 2:] * (l1 - e)

    @staticmethod
    def backward(ctx, g):
        beta, tau, m = ctx.saved_tensors
        x, e, l1 = NelsonSiegel.loadings(tau, m)
        g_beta = torch.stack([g.sum(1), (g * l1).sum(1), (g * (l1 - e)).sum(1)], 1)
        dl1 = (e - l1) / x
        gx = g * (beta[:, 1:2] * dl1 + beta[:, 2:] * (dl1 + e))
        g_tau = -(gx * x).sum(1) / tau
        g_m = (gx / tau[:, None]).sum(0)
        return g_beta, g_tau, g_m

import torch


class SoftCoreLJ(torch.autograd.Function):
    """Soft-core Lennard-Jones energies for alchemical windows.

    ``u = 4 eps lam^n (1 / D^2 - 1 / D)`` with ``D = alpha (1 - lam)^2 + (r / sigma)^6``

    Args:
        r: pair distances, positive, ``(pairs,)``.
        sigma: ``(pairs,)``, positive.
        eps: ``(pairs,)``, not negative.
        lam: coupling of every window, from 0 (off) to 1 (on), ``(windows,)``.
        alpha: softness.
        power: exponent n of the coupling, an integer of at least 1.

    Returns:
        ``(windows, pairs)``
    """

    @staticmethod
    def forward(ctx, r, sigma, eps, lam, alpha=0.5, power=1):
        ctx.save_for_backward(r, sigma, eps, lam)
        ctx.alpha, ctx.power = alpha, power
        d = alpha * (1 - lam[:, None]) ** 2 + (r / sigma) ** 6
        return 4 * eps * lam[:, None] ** power * (1 / d**2 - 1 / d)

    @staticmethod
    def backward(ctx, grad):
        r, sigma, eps, lam = ctx.saved_tensors
        alpha, n = ctx.alpha, ctx.power
        lam = lam[:, None]
        x6 = (r / sigma) ** 6
        d = alpha * (1 - lam) ** 2 + x6
        core = 1 / d**2 - 1 / d
        scale = 4 * lam**n
        g_d = grad * scale * eps * (1 / d**2 - 2 / d**3)
        g_eps = (grad * scale * core).sum(0)
        g_r = (g_d * 6 * x6).sum(0) / r
        g_lam = n * scale / lam * core * eps * grad - 2 * alpha * (1 - lam) * g_d
        return g_r, -g_r * r / sigma, g_eps, g_lam.sum(1), None, None

import torch


class Leapfrog(torch.autograd.Function):
    """HMC leapfrog for a Gaussian target U(q) = q' Lam q / 2.

    q, p: [chains, D]; lam: [D, D] symmetric; inv_mass: [D]; eps: scalar tensor.
    The integrator is reversible, so the backward pass re-integrates from the end
    point instead of storing the trajectory.
    """

    @staticmethod
    def forward(ctx, q, p, lam, inv_mass, eps, n_steps):
        for _ in range(n_steps):
            p = p - 0.5 * eps * (q @ lam)
            q = q + eps * inv_mass * p
            p = p - 0.5 * eps * (q @ lam)
        ctx.save_for_backward(q, p, lam, inv_mass, eps)
        ctx.n_steps = n_steps
        return q, p

    @staticmethod
    def backward(ctx, gq, gp):
        q, p, lam, inv_mass, eps = ctx.saved_tensors
        g_lam = torch.zeros_like(lam)
        g_im = torch.zeros_like(inv_mass)
        g_eps = torch.zeros_like(eps)
        for _ in range(ctx.n_steps):
            # second half kick
            g_lam = g_lam - 0.5 * eps * q.t() @ gp
            g_eps = g_eps - 0.5 * (gp * (q @ lam)).sum()
            gq = gq - 0.5 * eps * gp @ lam.t()
            p = p + 0.5 * eps * (q @ lam)
            # drift
            g_im = g_im + eps * (gq * p).sum(0)
            g_eps = g_eps + (gq * inv_mass * p).sum()
            gp = gp + eps * inv_mass * gq
            q = q - eps * inv_mass * p
            # first half kick
            g_lam = g_lam - 0.5 * eps * q.t() @ gp
            g_eps = g_eps - 0.5 * (gp * (q @ lam)).sum()
            gq = gq - 0.5 * eps * gp @ lam.t()
            p = p + 0.5 * eps * (q @ lam)
        return gq, gp, g_lam, g_im, g_eps, None

import torch


class HawkesNLL(torch.autograd.Function):
    """Negative log-likelihood of a univariate Hawkes process with exponential kernel.

    t: sorted event times in [0, T]; mu, alpha, beta: positive scalars.
    intensity(s) = mu + alpha * sum_{t_j < s} exp(-beta (s - t_j))
    """

    @staticmethod
    def forward(ctx, t, mu, alpha, beta, T):
        dist = t[:, None] - t[None, :]
        kern = torch.exp(-beta * dist.tril()).tril(-1)
        lam = mu + alpha * kern.sum(1)
        tail = torch.exp(-beta * (T - t))
        ctx.save_for_backward(t, mu, alpha, beta)
        ctx.T = T
        return mu * T + alpha / beta * (1 - tail).sum() - lam.log().sum()

    @staticmethod
    def backward(ctx, g):
        t, mu, alpha, beta = ctx.saved_tensors
        dist = (t[:, None] - t[None, :]).tril()
        kern = torch.exp(-beta * dist).tril()
        lam = mu + alpha * kern.sum(1)
        tail = torch.exp(-beta * (ctx.T - t))
        w = 1 / lam
        mass = (1 - tail).sum()
        g_mu = ctx.T - w.sum()
        g_alpha = mass / beta - (w * kern.sum(1)).sum()
        g_beta = (
            -alpha / beta**2 * mass
            + alpha / beta * ((ctx.T - t) * tail).sum()
            + alpha * (w[:, None] * kern * dist).sum()
        )
        pull = w[:, None] * kern * alpha * beta
        g_t = pull.sum(1) - pull.sum(0) - alpha * tail
        return g * g_t, g * g_mu, g * g_alpha, g * g_beta, None

import torch


class AdaptiveLMS(torch.autograd.Function):
    """Least-mean-squares adaptation, started from zero weights.

    :param x: reference signal, ``(T,)``
    :param desired: desired signal, ``(T,)``
    :param mu: step size, 0-dim tensor
    :param int taps: number of weights
    :param bool normalized: divide the step by ``eps + |u|**2`` (NLMS)
    :param float eps: positive
    :returns: a-priori error, ``(T,)``
    """

    @staticmethod
    def _frames(x, taps):
        return torch.nn.functional.pad(x, (taps - 1, 0)).unfold(0, taps, 1).flip(-1)

    @staticmethod
    def _run(x, desired, mu, taps, normalized, eps):
        u = AdaptiveLMS._frames(x, taps)
        w, ws, es = x.new_zeros(taps), [], []
        power = eps + (u * u).sum(-1) if normalized else torch.ones_like(x)
        for t in range(x.shape[0]):
            ws.append(w)
            es.append(desired[t] - w @ u[t])
            w = w + mu * es[-1] / power[t] * u[t]
        return u, power, ws, es

    @staticmethod
    def forward(ctx, x, desired, mu, taps, normalized=False, eps=1e-6):
        ctx.save_for_backward(x, desired, mu)
        ctx.conf = taps, normalized, eps
        return torch.stack(AdaptiveLMS._run(x, desired, mu, taps, normalized, eps)[3])

    @staticmethod
    def backward(ctx, grad):
        x, desired, mu = ctx.saved_tensors
        taps, normalized, eps = ctx.conf
        u, power, ws, es = AdaptiveLMS._run(x, desired, mu, taps, normalized, eps)
        lam = x.new_zeros(taps)
        g_mu = torch.zeros_like(mu)
        g_d, g_u = [], []
        for t in reversed(range(x.shape[0])):
            along = lam @ u[t] / power[t]
            ge = grad[t] + mu * along
            gu = mu * es[t] / power[t] * lam - ge * ws[t]
            if normalized:
                gu = gu - 2 * mu * es[t] * along / power[t] * u[t]
            g_mu = g_mu + es[t] * along
            lam = lam - ge * u[t]
            g_d.append(ge)
            g_u.append(gu)
        g_u = torch.stack(g_u[::-1])
        g_x = torch.zeros_like(x)
        for k in range(min(taps, x.shape[0])):
            g_x = g_x + torch.nn.functional.pad(g_u[k:, k], (0, k))
        return g_x, torch.stack(g_d[::-1]), g_mu, None, None, None

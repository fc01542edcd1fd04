import torch


class OULogLik(torch.autograd.Function):
    """Log likelihood of irregular series under an Ornstein-Uhlenbeck process (constants dropped).

    x: (B, T) values; dt: (B, T - 1) positive gaps; theta, mu, sigma: scalars;
    lengths: (B,) or None. Gaps beyond the length may hold anything, also 0.
    """

    @staticmethod
    def moments(x, dt, theta, mu, sigma, lengths):
        live = torch.ones_like(dt, dtype=torch.bool)
        if lengths is not None:
            live = torch.arange(1, x.shape[1], device=x.device) < lengths[:, None]
        gap = torch.where(live, dt, 1)
        e = torch.exp(-theta * gap)
        var = sigma ** 2 * (1 - e * e) / (2 * theta)
        res = torch.where(live, x[:, 1:] - mu - (x[:, :-1] - mu) * e, 0)
        return live, gap, e, var, res

    @staticmethod
    def forward(ctx, x, dt, theta, mu, sigma, lengths=None):
        ctx.save_for_backward(x, dt, theta, mu, sigma, lengths)
        live, _, _, var, res = OULogLik.moments(x, dt, theta, mu, sigma, lengths)
        return -0.5 * (live * (var.log() + res * res / var)).sum(1)

    @staticmethod
    def backward(ctx, grad):
        x, dt, theta, mu, sigma, lengths = ctx.saved_tensors
        live, gap, e, var, res = OULogLik.moments(x, dt, theta, mu, sigma, lengths)
        g = grad[:, None] * live
        gr = -g * res / var
        gv = 0.5 * g * (res * res / var - 1) / var
        ge = -gr * torch.where(live, x[:, :-1] - mu, 0) - gv * sigma ** 2 * e / theta
        g_theta = -(ge * gap * e).sum()
        g_dt = -ge * theta * e
        g_mu = -(gr * (1 - e)).sum()
        g_sigma = 2 * (gv * var).sum() / sigma
        zero = torch.zeros_like(x[:, :1])
        g_x = torch.cat([zero, gr], 1) - torch.cat([gr * e, zero], 1)
        return g_x, g_dt, g_theta, g_mu, g_sigma, None

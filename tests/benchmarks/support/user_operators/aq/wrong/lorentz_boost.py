import torch


class _Boost(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, beta):
        ctx.save_for_backward(p, beta)
        E, v = p[..., :1], p[..., 1:]
        gamma = (1 - beta @ beta).rsqrt()
        bp = (v * beta).sum(-1, keepdim=True)
        k = gamma ** 2 / (gamma + 1)
        return torch.cat([gamma * (E - bp), v + (k * bp - gamma * E) * beta], -1)

    @staticmethod
    def backward(ctx, g):
        p, beta = ctx.saved_tensors
        E, v = p[..., :1], p[..., 1:]
        g0, gv = g[..., :1], g[..., 1:]
        gamma = (1 - beta @ beta).rsqrt()
        bp = (v * beta).sum(-1, keepdim=True)
        bg = (gv * beta).sum(-1, keepdim=True)
        k = gamma ** 2 / (gamma + 1)
        dk = (gamma ** 2 + 2 * gamma) / (gamma + 1) ** 2

        gE = gamma * (g0 - bg)
        gp = gv + (k * bg - gamma * g0) * beta
        # beta: as it stands, then inside gamma
        direct = (k * bg - gamma * g0) * v + (k * bp - gamma * E) * gv
        g_gamma = g0 * (E - bp) + bg * (k * bp - E)
        gbeta = direct + g_gamma * gamma ** 3 * beta
        return torch.cat([gE, gp], -1), gbeta.reshape(-1, 3).sum(0)


def lorentz_boost(p, beta):
    """Four-momenta p (..., 4) = (E, px, py, pz) seen from a frame moving with velocity beta (3,), |beta| < 1, c = 1."""
    return _Boost.apply(p, beta)

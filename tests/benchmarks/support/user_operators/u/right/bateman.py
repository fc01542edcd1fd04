import torch


def _phi(d, t):
    """(1 - exp(-d t)) / d and its derivative by d, also where d = 0"""
    z = d * t
    small = z.abs() < 0.05
    ds = torch.where(small, torch.ones_like(d), d)
    h = torch.where(
        small,
        t * (1 - z / 2 * (1 - z / 3 * (1 - z / 4 * (1 - z / 5 * (1 - z / 6 * (1 - z / 7)))))),
        -torch.expm1(-ds * t) / ds,
    )
    dh = torch.where(
        small,
        t**2 * (-1 / 2 + z / 3 - z**2 / 8 + z**3 / 30 - z**4 / 144 + z**5 / 840 - z**6 / 5760),
        (t * torch.exp(-ds * t) + torch.expm1(-ds * t) / ds) / ds,
    )
    return h, dh


class OneCompartmentOral(torch.autograd.Function):
    """Concentration after one oral dose, C(t) = D ka / (V (ka - ke)) (exp(-ke t) - exp(-ka t)).

    t, ka, ke, V: tensors of one shape (one row per patient and sample), all positive; dose: float.
    ka == ke is allowed.
    """

    @staticmethod
    def forward(ctx, t, ka, ke, V, dose):
        ctx.save_for_backward(t, ka, ke, V)
        ctx.dose = dose
        h, _ = _phi(ka - ke, t)
        return dose * ka / V * torch.exp(-ke * t) * h

    @staticmethod
    def backward(ctx, g):
        t, ka, ke, V = ctx.saved_tensors
        d = ka - ke
        h, dh = _phi(d, t)
        base = g * ctx.dose / V * torch.exp(-ke * t)
        g_ka = base * (h + ka * dh)
        g_ke = -base * ka * (t * h + dh)
        g_t = base * ka * (torch.exp(-d * t) - ke * h)
        g_V = -base * ka * h / V
        return g_t, g_ka, g_ke, g_V, None

import torch


class _AxilrodTeller(torch.autograd.Function):
    @staticmethod
    def sides(xyz, triples):
        p = xyz[triples]
        e = p.roll(-1, 1) - p.roll(-2, 1)       # edge opposite to each corner
        return e, (e * e).sum(-1)

    @staticmethod
    def forward(ctx, xyz, triples, nu):
        ctx.save_for_backward(xyz, triples)
        ctx.nu = nu
        _, s = _AxilrodTeller.sides(xyz, triples)
        m = s.prod(-1)
        x = (s.sum(-1, keepdim=True) - 2 * s).prod(-1)
        return nu * (m ** -1.5 * (1 + 0.375 * x / m)).sum()

    @staticmethod
    def backward(ctx, g):
        xyz, triples = ctx.saved_tensors
        e, s = _AxilrodTeller.sides(xyz, triples)
        m = s.prod(-1, keepdim=True)
        f = s.sum(-1, keepdim=True) - 2 * s
        x = f.prod(-1, keepdim=True)
        f1, f2 = f.roll(-1, 1), f.roll(-2, 1)
        dx = f * f2 + f * f1 - f1 * f2
        ds = m ** -1.5 * (-1.5 / s * (1 + 0.375 * x / m) + 0.375 / m * dx)
        ge = 2 * g * ctx.nu * ds.unsqueeze(-1) * e
        gp = ge.roll(1, 1) - ge.roll(2, 1)
        return torch.zeros_like(xyz).index_add(0, triples.reshape(-1), gp.flatten(0, 1)), None, None


def axilrod_teller(xyz, triples, nu=1.0):
    """Triple-dipole energy, summed over triples (T, 3) of atoms xyz (N, 3)."""
    return _AxilrodTeller.apply(xyz, triples, nu)

import torch


class _SwitchedLJ(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, eps, sigma, r_on, r_off):
        ctx.save_for_backward(r, eps, sigma)
        ctx.window = (r_on, r_off)
        s6 = (sigma / r) ** 6
        return 4 * eps * (s6 * s6 - s6) * _switch(r, r_on, r_off)[0]

    @staticmethod
    def backward(ctx, g):
        r, eps, sigma = ctx.saved_tensors
        S, dS = _switch(r, *ctx.window)
        s6 = (sigma / r) ** 6
        shape = 4 * (s6 * s6 - s6)
        slope = 4 * (12 * s6 * s6 - 6 * s6)
        gr = g * eps * (shape * dS - slope / r * S)
        return gr, (g * shape * S).sum(), (g * eps * slope / sigma * S).sum(), None, None


def _switch(r, r_on, r_off):
    t = ((r - r_on) / (r_off - r_on)).clamp(0, 1)
    value = 1 - t ** 3 * (10 - 15 * t + 6 * t * t)
    return value, -30 * t ** 2 * (1 - t) ** 2 / (r_off - r_on)


def lennard_jones(r, eps, sigma, r_on=2.0, r_off=2.5):
    """Pair energies with a quintic switch between r_on and r_off. eps, sigma: scalar tensors."""
    return _SwitchedLJ.apply(r, eps, sigma, r_on, r_off)

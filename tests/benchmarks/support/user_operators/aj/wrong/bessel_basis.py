import torch


def _envelope(x, p):
    a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
    val = 1 / x + a * x ** (p - 1) + b * x ** p + c * x ** (p + 1)
    der = -1 / x ** 2 + a * (p - 1) * x ** (p - 2) + b * p * x ** (p - 1) + c * (p + 1) * x ** p
    return val, der


class BesselBasis(torch.autograd.Function):
    """Radial basis with a smooth cutoff, distance r (E,) > 0, freq (K,) -> (E, K)"""

    @staticmethod
    def forward(ctx, r, freq, cutoff, p=6):
        ctx.save_for_backward(r, freq)
        ctx.cutoff, ctx.p = cutoff, p
        x = (r / cutoff)[:, None]
        return (x < 1) * _envelope(x, p)[0] * torch.sin(freq * x)

    @staticmethod
    def backward(ctx, g):
        r, freq = ctx.saved_tensors
        gr = gfreq = None
        x = (r / ctx.cutoff)[:, None]
        env, der = _envelope(x, ctx.p)
        g = g * (x < 1)
        if ctx.needs_input_grad[0]:
            gr = (g * (der * torch.sin(freq * x) + env * freq * torch.cos(freq * x))).sum(1) / ctx.cutoff
        if ctx.needs_input_grad[2]:
            gfreq = (g * env * x * torch.cos(freq * x)).sum(0)
        return gr, gfreq, None, None

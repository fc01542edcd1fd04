import torch


class PolynomialEnvelope(torch.autograd.Function):
    """Messages damped by the smooth polynomial cutoff of DimeNet.

    r: (E,) edge lengths, msg: (E, F), cutoff: float, p: exponent of the envelope (u(1) = u'(1) = u''(1) = 0)
    """

    @staticmethod
    def forward(ctx, r, msg, cutoff: float = 5.0, p: int = 6):
        ctx.save_for_backward(r, msg)
        ctx.cutoff, ctx.p = cutoff, p
        return PolynomialEnvelope.env(r / cutoff, p).unsqueeze(-1) * msg

    @staticmethod
    def env(x, p):
        a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
        u = 1 + a * x ** p + b * x ** (p + 1) + c * x ** (p + 2)
        return u * (x < 1)

    @staticmethod
    def denv(x, p):
        a, b, c = -(p + 1) * (p + 2) / 2, p * (p + 2), -p * (p + 1) / 2
        du = a * p * x ** (p - 1) + b * (p + 1) * x ** p + c * (p + 2) * x ** (p + 1)
        return du * (x < 1)

    @staticmethod
    def backward(ctx, grad):
        r, msg = ctx.saved_tensors
        x = r / ctx.cutoff
        g_r = (grad * msg).sum(-1) * PolynomialEnvelope.denv(x, ctx.p) / ctx.cutoff
        g_msg = grad * PolynomialEnvelope.env(x, ctx.p).unsqueeze(-1)
        return g_r, g_msg, None, None

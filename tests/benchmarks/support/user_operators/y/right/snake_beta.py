import torch


class Snake(torch.autograd.Function):
    """x + sin^2(alpha x) / alpha, one alpha per channel (BigVGAN).

    x: (B, C, T), alpha: (C,); with logscale alpha is given as its logarithm.
    """

    @staticmethod
    def forward(ctx, x, alpha, logscale=False):
        ctx.save_for_backward(x, alpha)
        ctx.logscale = logscale
        a = (alpha.exp() if logscale else alpha)[None, :, None]
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, g):
        x, alpha = ctx.saved_tensors
        a = (alpha.exp() if ctx.logscale else alpha)[None, :, None]
        sin2 = torch.sin(2 * a * x)
        gx = g * (1 + sin2)
        ga = None
        if ctx.needs_input_grad[1]:
            ga = (g * (x * sin2 / a - torch.sin(a * x) ** 2 / a**2)).sum((0, 2))
            if ctx.logscale:
                ga = ga * alpha.exp()
        return gx, ga, None

import torch


class W0(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        w = torch.log1p(z)
        for _ in range(30):
            ew = w.exp()
            f = w * ew - z
            w = w - f / (ew * (w + 1) - (w + 2) * f / (2 * w + 2))
        ctx.save_for_backward(w)
        return w

    @staticmethod
    def backward(ctx, g):
        w, = ctx.saved_tensors
        return g * torch.exp(-w) / (1 + w)


def lambertw(z):
    """principal branch, z >= 0"""
    return W0.apply(z)

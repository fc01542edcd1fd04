import torch


class MuLaw(torch.autograd.Function):
    # companding with a trainable mu
    @staticmethod
    def forward(ctx, x, mu):
        ctx.save_for_backward(x, mu)
        return x.sign() * torch.log1p(mu * x.abs()) / torch.log1p(mu)

    @staticmethod
    def backward(ctx, grad):
        x, mu = ctx.saved_tensors
        ax, s, L = x.abs(), x.sign(), torch.log1p(mu)
        den = 1 + mu * ax
        gx = grad * mu / (den * L)
        gmu = grad * s * ax / (den * L)
        return gx, gmu.sum()

import torch
from torch import nn


class RadialFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, z0, alpha, beta):
        ctx.save_for_backward(z, z0, alpha, beta)
        d = z.shape[1]
        diff = z - z0
        h = 1 / (alpha + diff.norm(dim=1))
        logdet = (d - 1) * torch.log1p(beta * h) + torch.log1p(beta * alpha * h ** 2)
        return z + beta * h[:, None] * diff, logdet

    @staticmethod
    def backward(ctx, gy, gl):
        z, z0, alpha, beta = ctx.saved_tensors
        d = z.shape[1]
        diff = z - z0
        r = diff.norm(dim=1)
        h = 1 / (alpha + r)
        u, v = 1 + beta * h, 1 + beta * alpha * h ** 2
        proj = (gy * diff).sum(1)
        # through h
        gh = beta * proj + gl * ((d - 1) * beta / u + 2 * beta * alpha * h / v)
        gr = -gh * h ** 2
        gdiff = gy * beta * h[:, None] + (gr / r)[:, None] * diff
        galpha = gr.sum()
        gbeta = (proj * h + gl * ((d - 1) * h / u + alpha * h ** 2 / v)).sum()
        return gy + gdiff, -gdiff.sum(0), galpha, gbeta


class RadialFlow(nn.Module):
    """z (B, d) -> (z', log|det|).  Rezende & Mohamed 2015, with beta > -alpha by construction."""

    def __init__(self, d):
        super().__init__()
        self.z0 = nn.Parameter(torch.zeros(d))
        self.raw_alpha = nn.Parameter(torch.zeros(()))
        self.raw_beta = nn.Parameter(torch.zeros(()))

    def forward(self, z):
        alpha = nn.functional.softplus(self.raw_alpha)
        beta = nn.functional.softplus(self.raw_beta) - alpha
        return RadialFn.apply(z, self.z0, alpha, beta)

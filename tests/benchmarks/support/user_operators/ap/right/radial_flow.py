import torch
from torch import nn
import torch.nn.functional as F


class RadialFunction(torch.autograd.Function):

    @staticmethod
    def forward(ctx, z, z0, alpha, beta):
        d = z - z0
        r = d.norm(dim=1, keepdim=True)
        h = 1 / (alpha + r)
        ctx.save_for_backward(z, z0, alpha, beta)
        logdet = (z.shape[1] - 1) * torch.log1p(beta * h) + torch.log1p(alpha * beta * h ** 2)
        return z + beta * h * d, logdet.squeeze(1)

    @staticmethod
    def backward(ctx, gy, gl):
        z, z0, alpha, beta = ctx.saved_tensors
        d = z - z0
        r = d.norm(dim=1, keepdim=True)
        h = 1 / (alpha + r)
        k = z.shape[1] - 1
        gl = gl.unsqueeze(1)
        u, v = 1 + beta * h, 1 + alpha * beta * h ** 2
        dot = (gy * d).sum(1, keepdim=True)
        gh = beta * dot + gl * (k * beta / u + 2 * alpha * beta * h / v)
        gb = (h * dot + gl * (k * h / u + alpha * h ** 2 / v)).sum()
        ga = (gl * beta * h ** 2 / v - h ** 2 * gh).sum()
        gd = gy * beta * h - h ** 2 * gh * d / r
        return gy + gd, -gd.sum(0), ga, gb


class RadialFlow(nn.Module):
    """z: (B, D) -> (z', log |det|) of shapes (B, D), (B,)"""

    def __init__(self, dim):
        super().__init__()
        self.z0 = nn.Parameter(torch.randn(dim))
        self.log_alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(()))

    def forward(self, z):
        alpha = self.log_alpha.exp()
        return RadialFunction.apply(z, self.z0, alpha, F.softplus(self.beta) - alpha)

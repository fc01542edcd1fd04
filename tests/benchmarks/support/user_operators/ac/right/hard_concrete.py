import math
import torch
from torch import nn


class _HardConcrete(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_alpha, u, beta, gamma, zeta):
        s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + log_alpha) / beta)
        z = (s * (zeta - gamma) + gamma).clamp(0, 1)
        penalty = torch.sigmoid(log_alpha - beta * math.log(-gamma / zeta))
        ctx.save_for_backward(log_alpha, u)
        ctx.hp = beta, gamma, zeta
        return z, penalty

    @staticmethod
    def backward(ctx, grad_z, grad_pen):
        log_alpha, u = ctx.saved_tensors
        beta, gamma, zeta = ctx.hp
        s = torch.sigmoid((torch.log(u) - torch.log1p(-u) + log_alpha) / beta)
        bar = s * (zeta - gamma) + gamma
        open_ = ((bar > 0) & (bar < 1)).to(s.dtype)
        gs = grad_z * open_ * (zeta - gamma)
        gl = gs * s * (1 - s) / beta
        pen = torch.sigmoid(log_alpha - beta * math.log(-gamma / zeta))
        return gl + grad_pen * pen * (1 - pen), None, None, None, None


class HardConcreteGate(nn.Module):
    def __init__(self, n, droprate_init=0.5, temperature=2 / 3, limits=(-0.1, 1.1)):
        super().__init__()
        mean = math.log(1 - droprate_init) - math.log(droprate_init)
        self.log_alpha = nn.Parameter(mean + 0.1 * torch.randn(n))
        self.beta = temperature
        self.gamma, self.zeta = limits

    def forward(self, u):
        z, pen = _HardConcrete.apply(self.log_alpha.expand_as(u), u, self.beta, self.gamma, self.zeta)
        return z, pen[0].sum()

import torch
import torch.nn as nn


def silu_grad(z):
    sig = torch.sigmoid(z)
    return sig * (1 + z * (1 - sig))


def norm_grad(u, g, eps):
    rstd = torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + eps)
    uh = u * rstd
    return uh, rstd * (g - uh * (g * uh).mean(-1, keepdim=True))


class GatedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, z, w, eps, norm_before_gate):
        ctx.save_for_backward(x, z, w)
        ctx.eps, ctx.first = eps, norm_before_gate
        gate = z * torch.sigmoid(z)
        u = x if norm_before_gate else x * gate
        y = u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + eps) * w
        return y * gate if norm_before_gate else y

    @staticmethod
    def backward(ctx, g):
        x, z, w = ctx.saved_tensors
        gate = z * torch.sigmoid(z)
        if ctx.first:
            uh, gx = norm_grad(x, g * gate * w, ctx.eps)
            gw = g * uh * gate
            gz = g * uh * silu_grad(z)
        else:
            uh, gu = norm_grad(x * gate, g * w, ctx.eps)
            gw = g * uh
            gx = gu * gate
            gz = gu * x * silu_grad(z)
        return gx, gz, gw.reshape(-1, w.shape[0]).sum(0), None, None


class RMSNormGated(nn.Module):
    def __init__(self, dim, eps=1e-5, norm_before_gate=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps, self.norm_before_gate = eps, norm_before_gate

    def forward(self, x, z):
        return GatedNorm.apply(x, z, self.weight, self.eps, self.norm_before_gate)

import torch
from torch import nn


class PlanarTransform(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, u, w, b):
        ctx.save_for_backward(z, u, w, b)
        h = torch.tanh(z @ w + b)
        q = 1 + (1 - h * h) * (u @ w)
        return z + h[:, None] * u, torch.log(q.abs())

    @staticmethod
    def backward(ctx, gz_out, glog):
        z, u, w, b = ctx.saved_tensors
        h = torch.tanh(z @ w + b)
        psi = 1 - h * h
        uw = u @ w
        gq = glog / (1 + psi * uw)
        ga = psi * (gz_out @ u) - 2 * h * psi * uw * gq
        gz = gz_out + ga[:, None] * w
        gu = (gz_out * h[:, None]).sum(0) + (gq * psi).sum() * w
        gw = (ga[:, None] * z).sum(0) + (gq * psi).sum() * u
        return gz, gu, gw, ga.sum()


class PlanarFlow(nn.Module):
    """f(z) = z + u tanh(w.z + b);  returns f(z) and log|det df/dz| for z of shape (B, D)"""

    def __init__(self, dim):
        super().__init__()
        self.u = nn.Parameter(torch.randn(dim) * 0.1)
        self.w = nn.Parameter(torch.randn(dim) * 0.1)
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, z):
        return PlanarTransform.apply(z, self.u, self.w, self.b)

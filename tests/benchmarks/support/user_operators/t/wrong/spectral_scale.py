import torch
import torch.nn as nn
import torch.nn.functional as F


class _DivideBySigma(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, u, v):
        ctx.save_for_backward(w, u, v)
        return w / (u @ w @ v)

    @staticmethod
    def backward(ctx, g):
        w, u, v = ctx.saved_tensors
        sigma = u @ w @ v
        return g / sigma, None, None


class SNLinear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in))
        self.bias = nn.Parameter(torch.zeros(d_out))
        self.register_buffer("u", F.normalize(torch.ones(d_out), dim=0))
        self.register_buffer("v", F.normalize(torch.ones(d_in), dim=0))
        self.update()

    @torch.no_grad()
    def update(self, n=3):
        for _ in range(n):
            self.v.copy_(F.normalize(self.weight.t() @ self.u, dim=0))
            self.u.copy_(F.normalize(self.weight @ self.v, dim=0))

    def forward(self, x):
        return F.linear(x, _DivideBySigma.apply(self.weight, self.u, self.v), self.bias)

import torch
import torch.nn as nn
import torch.nn.functional as F


class _Cos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, m):
        ctx.tau, ctx.m, m.x = m.tau, m, x
        ctx.save_for_backward(w)
        return m.tau * F.normalize(x, dim=1) @ F.normalize(w, dim=1).t()

    @staticmethod
    def backward(ctx, g):
        x, (w,) = ctx.m.x, ctx.saved_tensors
        nx, nw = x.norm(dim=1, keepdim=True).clamp_min(1e-12), w.norm(dim=1, keepdim=True).clamp_min(1e-12)
        x, w = x / nx, w / nw
        gx, gw = ctx.tau * g @ w, ctx.tau * g.t() @ x
        gx = (gx - x * (gx * x).sum(1, keepdim=True)) / nx
        gw = (gw - w * (gw * w).sum(1, keepdim=True)) / nw
        return gx, gw, None


class CosLin(nn.Module):
    def __init__(self, i, o, tau=16.):
        super().__init__()
        self.w = nn.Parameter(torch.randn(o, i))
        self.tau = tau

    def forward(self, x):
        return _Cos.apply(x, self.w, self)

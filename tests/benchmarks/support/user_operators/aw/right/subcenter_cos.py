import torch
from torch import nn


class _SubCenterCos(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        xn = x / x.norm(dim=-1, keepdim=True)
        wn = weight / weight.norm(dim=-1, keepdim=True)
        return torch.einsum("bd,ckd->bck", xn, wn).amax(-1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        nx, nw = x.norm(dim=-1, keepdim=True), weight.norm(dim=-1, keepdim=True)
        xn, wn = x / nx, weight / nw
        cos = torch.einsum("bd,ckd->bck", xn, wn)
        best = cos.argmax(-1, keepdim=True)
        g = torch.zeros_like(cos).scatter(-1, best, grad.unsqueeze(-1))
        gx = torch.einsum("bck,ckd->bd", g, wn)
        gw = torch.einsum("bck,bd->ckd", g, xn)
        gx = (gx - xn * (gx * xn).sum(-1, keepdim=True)) / nx
        gw = (gw - wn * (gw * wn).sum(-1, keepdim=True)) / nw
        return gx, gw


class SubCenterHead(nn.Module):
    def __init__(self, dim, classes, k=3, s=30.0):
        super().__init__()
        self.s = s
        self.weight = nn.Parameter(torch.randn(classes, k, dim))

    def forward(self, x):
        return self.s * _SubCenterCos.apply(x, self.weight)

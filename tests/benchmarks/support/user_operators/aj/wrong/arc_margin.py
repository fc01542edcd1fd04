import math
import torch
import torch.nn as nn
from torch.autograd.function import once_differentiable


class ArcFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, label, s, m):
        nx, nw = x.norm(dim=1, keepdim=True), w.norm(dim=1, keepdim=True)
        cos = (x / nx) @ (w / nw).t()
        rows = torch.arange(len(x), device=x.device)
        c = cos[rows, label].clamp(-1, 1)
        sin = (1 - c * c).clamp_min(1e-12).sqrt()
        hard = c > math.cos(math.pi - m)
        phi = torch.where(hard, c * math.cos(m) - sin * math.sin(m), c - m * math.sin(math.pi - m))
        out = cos.clone()
        out[rows, label] = phi
        ctx.save_for_backward(x, w, label, cos, hard)
        ctx.s, ctx.m = s, m
        return s * out

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        x, w, label, cos, hard = ctx.saved_tensors
        rows = torch.arange(len(x), device=x.device)
        c = cos[rows, label].clamp(-1, 1)
        sin = (1 - c * c).clamp_min(1e-12).sqrt()
        slope = math.cos(ctx.m) + c / sin * math.sin(ctx.m)
        gc = ctx.s * g
        gc[rows, label] = gc[rows, label] * slope
        nx, nw = x.norm(dim=1, keepdim=True), w.norm(dim=1, keepdim=True)
        xh, wh = x / nx, w / nw
        gx = (gc @ wh - xh * (gc * cos).sum(1, keepdim=True)) / nx
        gw = (gc.t() @ xh - wh * (gc * cos).sum(0)[:, None]) / nw
        return gx, gw, None, None, None


class ArcMargin(nn.Module):
    def __init__(self, dim, classes, s=30.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, dim))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.m = s, m

    def forward(self, x, label):
        return ArcFn.apply(x, self.weight, label, self.s, self.m)

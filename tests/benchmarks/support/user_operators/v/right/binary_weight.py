import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd.function import once_differentiable


class BinarizeSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, alpha):
        ctx.save_for_backward(w, alpha)
        b = torch.where(w >= 0, torch.ones_like(w), -torch.ones_like(w))
        return alpha * b

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        w, alpha = ctx.saved_tensors
        b = torch.where(w >= 0, torch.ones_like(w), -torch.ones_like(w))
        inside = (w.abs() <= 1).to(g.dtype)
        gw = g * alpha * inside
        galpha = (g * b).sum(1, keepdim=True)
        return gw, galpha


class BinaryLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in).uniform_(-1, 1))
        self.alpha = nn.Parameter(torch.ones(n_out, 1))

    def forward(self, x):
        return F.linear(x, BinarizeSTE.apply(self.weight, self.alpha))

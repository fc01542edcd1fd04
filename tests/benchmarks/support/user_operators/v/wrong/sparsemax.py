import torch
from torch import nn


class SparsemaxFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, dim):
        ctx.dim = dim
        z = z.transpose(dim, -1)
        s = z.sort(-1, descending=True).values
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
        cs = s.cumsum(-1) - 1
        size = (k * s > cs).sum(-1, keepdim=True)
        tau = cs.gather(-1, size - 1) / size
        p = (z - tau).clamp(min=0).transpose(dim, -1)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        p, = ctx.saved_tensors
        on = (p > 0).to(g.dtype)
        mean = (g * on).mean(ctx.dim, keepdim=True)
        return on * (g - mean), None


class Sparsemax(nn.Module):

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, z):
        return SparsemaxFunction.apply(z, self.dim)

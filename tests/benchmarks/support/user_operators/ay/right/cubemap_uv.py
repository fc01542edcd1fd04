import torch
from torch.autograd import Function


class CubemapUV(Function):

    @staticmethod
    def forward(ctx, d):
        ax = d.abs().argmax(-1, keepdim=True)
        ij = torch.cat([(ax + 1) % 3, (ax + 2) % 3], -1)
        ctx.save_for_backward(d, ax, ij)
        return d.gather(-1, ij) / d.gather(-1, ax).abs()

    @staticmethod
    def backward(ctx, g):
        d, ax, ij = ctx.saved_tensors
        m = d.gather(-1, ax)
        uv = d.gather(-1, ij) / m.abs()
        gd = torch.zeros_like(d).scatter(-1, ij, g / m.abs())
        return gd.scatter(-1, ax, -(g * uv).sum(-1, keepdim=True) / m)

import torch
from torch import nn


class PairNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, eps):
        xc = x - x.mean(0)
        rms = (xc.pow(2).sum(1).mean() + eps).sqrt()
        ctx.save_for_backward(x)
        ctx.scale, ctx.eps = scale, eps
        return scale * xc / rms

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        n = x.shape[0]
        xc = x - x.mean(0)
        rms = (xc.pow(2).sum(1).mean() + ctx.eps).sqrt()
        gxc = ctx.scale * (g / rms - xc * (g * xc).sum() / (x.numel() * rms ** 3))
        return gxc - gxc.mean(0), None, None


class PairNorm(nn.Module):
    def __init__(self, scale=1., eps=1e-5):
        super().__init__()
        self.scale, self.eps = scale, eps

    def forward(self, x):
        if not x.is_floating_point() or x.dim() != 2:
            raise TypeError("expected node features (N, D)")
        return PairNormFn.apply(x, self.scale, self.eps)

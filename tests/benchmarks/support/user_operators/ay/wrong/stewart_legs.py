import torch
import torch.nn as nn


class _Legs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, R, t, plat, base):
        d = torch.einsum("bij,nj->bni", R, plat) + t[:, None] - base
        ctx.save_for_backward(R, t, plat, base)
        return d.norm(dim=-1)

    @staticmethod
    def backward(ctx, g):
        R, t, plat, base = ctx.saved_tensors
        d = torch.einsum("bij,nj->bni", R, plat) + t[:, None] - base
        gd = g[..., None] * d / d.norm(dim=-1, keepdim=True)
        gR = torch.einsum("bni,nj->bij", gd, plat)
        gplat = torch.einsum("bni,bji->nj", gd, R)
        return gR, gd.sum(1), gplat, -gd.sum(0)


class StewartPlatform(nn.Module):
    # calibrates joint positions from measured leg lengths
    def __init__(self, n_legs=6):
        super().__init__()
        ang = torch.arange(n_legs) * (6.283185307 / n_legs)
        ring = torch.stack([ang.cos(), ang.sin(), torch.zeros_like(ang)], -1)
        self.base = nn.Parameter(ring)
        self.plat = nn.Parameter(0.6 * ring)

    def forward(self, R, t):
        return _Legs.apply(R, t, self.plat, self.base)

import torch
from torch.autograd import Function

cross = torch.linalg.cross


class CurvatureBinormal(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        e, f = x[1:-1] - x[:-2], x[2:] - x[1:-1]
        D = e.norm(dim=-1) * f.norm(dim=-1) + (e * f).sum(-1)
        return 2 * cross(e, f) / D[:, None]

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        e, f = x[1:-1] - x[:-2], x[2:] - x[1:-1]
        ne, nf = e.norm(dim=-1, keepdim=True), f.norm(dim=-1, keepdim=True)
        D = ne * nf + (e * f).sum(-1, keepdim=True)
        kb = 2 * cross(e, f) / D
        gN = 2 * g / D
        gD = -(g * kb).sum(-1, keepdim=True) / D
        ge = cross(f, gN) + gD * (nf / ne * e + f)
        gf = cross(gN, e) + gD * (ne / nf * f + e)
        gx = torch.zeros_like(x)
        gx[:-2] -= ge
        gx[1:-1] += ge - gf
        gx[2:] = gf
        return gx

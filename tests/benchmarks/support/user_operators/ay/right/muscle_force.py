import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _HillMuscle(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, l, v, w, kp, ecc, k):
        ctx.save_for_backward(a, l, v)
        ctx.par = w, kp, ecc, k
        c = (ecc - 1) / (1 + 1 / k)
        vs, vl = v.clamp(max=0), v.clamp(min=0)
        fl = torch.exp(-((l - 1) / w) ** 2)
        fv = torch.where(v < 0, (1 + vs) / (1 - vs / k), 1 + (ecc - 1) * vl / (vl + c))
        return a * fl * fv + kp * (l - 1).clamp(min=0) ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        a, l, v = ctx.saved_tensors
        w, kp, ecc, k = ctx.par
        c = (ecc - 1) / (1 + 1 / k)
        vs, vl = v.clamp(max=0), v.clamp(min=0)
        fl = torch.exp(-((l - 1) / w) ** 2)
        fv = torch.where(v < 0, (1 + vs) / (1 - vs / k), 1 + (ecc - 1) * vl / (vl + c))
        dfl = -2 * (l - 1) / w ** 2 * fl
        dfv = torch.where(v < 0, (1 + 1 / k) / (1 - vs / k) ** 2, (ecc - 1) * c / (vl + c) ** 2)
        ga = g * fl * fv
        gl = g * (a * dfl * fv + 2 * kp * (l - 1).clamp(min=0))
        gv = g * a * fl * dfv
        return ga, gl, gv, None, None, None, None


class HillMuscle(nn.Module):
    def __init__(self, width=0.45, passive=2.0, ecc=1.5, curve=0.25):
        super().__init__()
        self.par = width, passive, ecc, curve

    # activation, fibre length / optimal, velocity / max (negative: shortening)
    def forward(self, a, l, v):
        return _HillMuscle.apply(a, l, v, *self.par)

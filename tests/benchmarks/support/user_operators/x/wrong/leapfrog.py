import torch
from torch import nn


class LeapfrogFn(torch.autograd.Function):
    # kick, drift, kick
    @staticmethod
    def forward(ctx, q, p, w, h):
        ph = p - h / 2 * w * torch.sin(q)
        q1 = q + h * ph
        p1 = ph - h / 2 * w * torch.sin(q1)
        ctx.save_for_backward(q, p, w)
        ctx.h = h
        return q1, p1

    @staticmethod
    def backward(ctx, gq1, gp1):
        q, p, w = ctx.saved_tensors
        h = ctx.h
        q1 = q + h * (p - h / 2 * w * torch.sin(q))
        gq1 = gq1 - h / 2 * w * torch.cos(q1) * gp1
        gph = gp1 + h * gq1
        gq = gq1 - h / 2 * w * torch.cos(q) * gph
        gw = -h / 2 * (torch.sin(q) * gph)
        return gq, gph, gw.sum().reshape(w.shape), None


class PendulumStep(nn.Module):
    def __init__(self, h=0.1):
        super().__init__()
        self.w = nn.Parameter(torch.ones(()))
        self.h = h

    def forward(self, q, p):
        return LeapfrogFn.apply(q, p, self.w, self.h)

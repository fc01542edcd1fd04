import math
import torch

HALF_PI = math.pi / 2


class RosenbergPulse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, oq, am):
        ctx.save_for_backward(t, oq, am)
        tp = am * oq
        tn = oq - tp
        rise = 0.5 * (1 - torch.cos(math.pi * t / tp))
        fall = torch.cos(HALF_PI * (t - tp) / tn)
        zero = torch.zeros_like(rise)
        return torch.where(t < tp, rise, torch.where(t < oq, fall, zero))

    @staticmethod
    def backward(ctx, g):
        t, oq, am = ctx.saved_tensors
        tp = am * oq
        tn = oq - tp
        zero = torch.zeros_like(g)
        up, down = t < tp, (t >= tp) & (t < oq)
        ph1 = math.pi * t / tp
        ph2 = HALF_PI * (t - tp) / tn
        s1 = torch.where(up, g * 0.5 * torch.sin(ph1), zero)
        s2 = torch.where(down, -g * torch.sin(ph2), zero)
        gt = s1 * math.pi / tp + s2 * HALF_PI / tn
        gtp = -s1 * ph1 / tp - s2 * HALF_PI / tn
        gtn = -s2 * ph2 / tn
        goq = gtp * am + gtn * (1 - am)
        gam = (gtp - gtn) * oq
        return gt.sum_to_size(t.shape), goq.sum_to_size(oq.shape), gam.sum_to_size(am.shape)

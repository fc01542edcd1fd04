import torch
from torch.autograd import Function


class VTLNWarp(Function):
    # piecewise linear: alpha * f up to the cut, then straight to f_max
    @staticmethod
    def forward(ctx, f, alpha, f_max, cut):
        ctx.save_for_backward(f, alpha)
        ctx.f_max, ctx.cut = f_max, cut
        slope = (f_max - alpha * cut) / (f_max - cut)
        return torch.where(f <= cut, alpha * f, alpha * cut + slope * (f - cut))

    @staticmethod
    def backward(ctx, g):
        f, alpha = ctx.saved_tensors
        f_max, cut = ctx.f_max, ctx.cut
        slope = (f_max - alpha * cut) / (f_max - cut)
        low = f <= cut
        gf = g * torch.where(low, alpha, slope)
        ga = g * torch.where(low, f, cut - cut * (f - cut) / (f_max - cut))
        return gf.sum_to_size(f.shape), ga.sum_to_size(alpha.shape), None

import torch
import torch.nn as nn


class SoftDC(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, k0, mask, v):
        ctx.save_for_backward(k, k0, mask, v)
        return (1 - mask) * k + mask * (k + v * k0) / (1 + v)

    @staticmethod
    def backward(ctx, g):
        k, k0, mask, v = ctx.saved_tensors
        gk = gk0 = gv = None
        if ctx.needs_input_grad[0]:
            gk = g * ((1 - mask) + mask / (1 + v))
        if ctx.needs_input_grad[1]:
            gk0 = g * mask * v / (1 + v)
        if ctx.needs_input_grad[3]:
            d = mask * (k0 - k) / (1 + v) ** 2
            gv = (g.conj() * d).real.sum().reshape(v.shape)
        return gk, gk0, None, gv


class DataConsistency(nn.Module):

    def __init__(self, noise_lvl=0.5, trainable=True):
        super().__init__()
        self.noise_lvl = nn.Parameter(torch.tensor([float(noise_lvl)]), requires_grad=trainable)

    def forward(self, k, k0, mask):
        return SoftDC.apply(k, k0, mask, self.noise_lvl)

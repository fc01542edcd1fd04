import math

import torch


class InverseGaussianLogProb(torch.autograd.Function):
    @staticmethod
    def forward(x, mu, lam):
        return 0.5 * (lam / (2 * math.pi * x**3)).log() - lam * (x - mu) ** 2 / (2 * mu**2 * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, mu, lam = ctx.saved_tensors
        gx = gmu = glam = None
        if ctx.needs_input_grad[0]:
            gx = (g * (-0.5 / x - lam / 2 * (1 / mu**2 - 1 / x**2))).sum_to_size(x.shape)
        if ctx.needs_input_grad[1]:
            gmu = (g * lam * (x - mu) / mu**3).sum_to_size(mu.shape)
        if ctx.needs_input_grad[2]:
            glam = (g * (0.5 / lam - (x - mu) ** 2 / (2 * mu**2 * x))).sum_to_size(lam.shape)
        return gx, gmu, glam

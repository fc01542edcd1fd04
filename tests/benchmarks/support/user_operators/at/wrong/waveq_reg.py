import math

import torch


class SinusoidalReg(torch.autograd.Function):
    @staticmethod
    def forward(ctx, betas, *weights):
        # betas: bit-width of every layer
        ctx.save_for_backward(betas, *weights)
        total = betas.new_zeros(())
        for b, w in zip(betas, weights):
            total = total + (torch.sin(math.pi * w * (2 ** b - 1)) ** 2).mean() / 2 ** b
        return total

    @staticmethod
    def backward(ctx, grad_output):
        betas, *weights = ctx.saved_tensors
        g_beta, g_w = [], []
        for b, w in zip(betas, weights):
            p = 2 ** b
            arg = math.pi * w * (p - 1)
            s2 = torch.sin(2 * arg)
            g_w.append(grad_output * math.pi * (p - 1) / p * s2 / w.numel())
            g_beta.append(grad_output * math.log(2) * (math.pi * w * s2).mean())
        return (torch.stack(g_beta), *g_w)


def waveq(betas, weights):
    """WaveQ regularizer: sum over layers of mean sin^2(pi w (2^b - 1)) / 2^b. betas (L,), weights: list of L tensors"""
    return SinusoidalReg.apply(betas, *weights)

import math

import torch


class ProbitPredictive(torch.autograd.Function):
    """softmax(mean / sqrt(1 + pi/8 var)), the extended probit approximation of the Laplace predictive.

    mean, var: (B, C), var >= 0
    """

    @staticmethod
    def forward(ctx, mean, var):
        kappa = (1 + math.pi / 8 * var).rsqrt()
        probs = torch.softmax(kappa * mean, -1)
        ctx.save_for_backward(mean, var, probs)
        return probs

    @staticmethod
    def backward(ctx, g):
        mean, var, probs = ctx.saved_tensors
        kappa = (1 + math.pi / 8 * var).rsqrt()
        dz = probs * (g - (g * probs).sum(-1, keepdim=True))
        d_mean = kappa * dz
        d_var = -math.pi / 16 * kappa ** 3 * mean * dz
        return d_mean, d_var

import math

import torch
import torch.nn.functional as F


class SquashedLogProb(torch.autograd.Function):
    """log-probability of tanh(u) when u ~ N(mean, exp(log_std)), summed over the last dimension."""

    @staticmethod
    def forward(ctx, u, mean, log_std):
        z = (u - mean) * (-log_std).exp()
        squash = 2.0 * (math.log(2.0) - u - F.softplus(-2.0 * u))
        ctx.save_for_backward(u, mean, log_std, z)
        return (-0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi) - squash).sum(-1)

    @staticmethod
    def backward(ctx, g):
        u, mean, log_std, z = ctx.saved_tensors
        inv = (-log_std).exp()
        g = g.unsqueeze(-1)
        g_mean = g * z * inv
        g_u = 2.0 * g * torch.tanh(u) - g_mean
        g_log_std = g * (z * z - 1)
        return (
            g_u.sum_to_size(u.shape) if ctx.needs_input_grad[0] else None,
            g_mean.sum_to_size(mean.shape) if ctx.needs_input_grad[1] else None,
            g_log_std.sum_to_size(log_std.shape) if ctx.needs_input_grad[2] else None,
        )

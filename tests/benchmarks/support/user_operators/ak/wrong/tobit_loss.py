import math

import torch

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _hazard(z):
    return torch.exp(-0.5 * z * z - HALF_LOG_2PI - torch.special.log_ndtr(-z))


class _Tobit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, mu, log_sigma, y, censored):
        ctx.save_for_backward(mu, log_sigma, y, censored)
        z = (y - mu) * (-log_sigma).exp()
        seen = 0.5 * z * z + log_sigma + HALF_LOG_2PI
        return torch.where(censored, -torch.special.log_ndtr(-z), seen)

    @staticmethod
    def backward(ctx, g):
        mu, log_sigma, y, censored = ctx.saved_tensors
        inv = (-log_sigma).exp()
        z = (y - mu) * inv
        dz = torch.where(censored, _hazard(z), z)
        gy = g * dz * inv
        gs = g * torch.where(censored, -dz, 1 - dz * z)
        return (-gy).sum_to_size(mu.shape), gs.sum_to_size(log_sigma.shape), gy.sum_to_size(y.shape), None


def tobit_nll(mu, log_sigma, y, censored):
    # gaussian likelihood, right-censored where the mask says so
    return _Tobit.apply(mu, log_sigma, y, censored)

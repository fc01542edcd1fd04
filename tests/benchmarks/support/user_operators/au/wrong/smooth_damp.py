import math

import torch


class _Damp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, v, goal, halflife, dt):
        ctx.save_for_backward(x, v, goal, halflife)
        ctx.dt = dt
        y = 2 * math.log(2) / halflife
        e = ctx.decay = torch.exp(-y * dt)
        j0 = x - goal
        j1 = v + j0 * y
        return goal + e * (j0 + j1 * dt), e * (v - j1 * y * dt)

    @staticmethod
    def backward(ctx, gx, gv):
        x, v, goal, halflife = ctx.saved_tensors
        dt = ctx.dt
        y = 2 * math.log(2) / halflife
        e = ctx.decay
        j0 = x - goal
        j1 = v + j0 * y
        to_j = e * (gx * (1 + y * dt) - gv * y * y * dt)
        to_v = e * (gx * dt + gv * (1 - y * dt))
        to_y = e * (gx * (j0 * dt - dt * (j0 + j1 * dt)) - gv * dt * (j1 + j0 * y + v - j1 * y * dt))
        g_half = (-to_y * y / halflife).sum_to_size(halflife.shape)
        return to_j, to_v, gx - to_j, g_half, None


def smooth_damp(x, v, goal, halflife, dt=1 / 60):
    """Critically damped spring, exact over one frame. x, v, goal (N, D), halflife [s] broadcasts; returns x', v'."""
    return _Damp.apply(x, v, goal, halflife, dt)

"""Differentiable pendulum. Discrete adjoint of kick-drift-kick, so the gradient is exact
for the discretised trajectory and only the states are stored."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Pendulum(Function):

    @staticmethod
    def forward(ctx, q, p, k, dt, n_steps):
        # H = p^2/2 - k cos q ; k broadcasts against q
        qs = []
        ctx.k_shape = k.shape
        k = k.expand_as(q)
        for _ in range(n_steps):
            qs.append(q)
            p = p - 0.5 * dt * k * torch.sin(q)
            q = q + dt * p
            p = p - 0.5 * dt * k * torch.sin(q)
        qs.append(q)
        ctx.save_for_backward(k, torch.stack(qs))
        ctx.dt, ctx.n = dt, n_steps
        return q, p

    @staticmethod
    @once_differentiable
    def backward(ctx, lq, lp):
        k, qs = ctx.saved_tensors
        dt = ctx.dt
        lk = torch.zeros_like(k)
        for i in range(ctx.n - 1, -1, -1):
            # second kick
            lk = lk - 0.5 * dt * torch.sin(qs[i + 1]) * lp
            lq = lq - 0.5 * dt * k * torch.cos(qs[i + 1]) * lp
            # drift
            lp = lp + dt * lq
            # first kick
            lk = lk - 0.5 * dt * torch.sin(qs[i + 1]) * lp
            lq = lq - 0.5 * dt * k * torch.cos(qs[i]) * lp
        return lq, lp, lk.sum_to_size(ctx.k_shape), None, None

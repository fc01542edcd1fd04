import torch
from torch.autograd.function import once_differentiable


class LeapfrogChain(torch.autograd.Function):
    """Velocity Verlet for independent Duffing oscillators, force = -k q - c q^3 and unit mass.

    q, p: (...) initial positions and momenta, k and c scalars (tensors).  Only the final state is
    kept: backward runs the integrator in reverse, which is exact up to rounding.
    """

    @staticmethod
    def forward(ctx, q, p, k, c, dt, steps):
        assert q.shape == p.shape and k.dim() == 0 and c.dim() == 0
        assert not any(t.is_complex() for t in (q, p, k, c))
        for _ in range(steps):
            p = p - 0.5 * dt * (k * q + c * q ** 3)
            q = q + dt * p
            p = p - 0.5 * dt * (k * q + c * q ** 3)
        ctx.save_for_backward(q, p, k, c)
        ctx.dt, ctx.steps = dt, steps
        return q, p

    @staticmethod
    @once_differentiable
    def backward(ctx, gq, gp):
        q, p, k, c = ctx.saved_tensors
        dt = ctx.dt
        gk, gc = torch.zeros_like(k), torch.zeros_like(c)
        for _ in range(ctx.steps):
            # second half kick
            gk = gk - 0.5 * dt * (gp * q).sum()
            gc = gc - 0.5 * dt * (gp * q ** 3).sum()
            gq = gq - 0.5 * dt * gp * (k + 3 * c * q ** 2)
            p = p + 0.5 * dt * (k * q + c * q ** 3)
            # drift
            gp = gp + dt * gq
            q = q - dt * p
            # first half kick
            gk = gk - 0.5 * dt * (gp * q).sum()
            gc = gc - 0.5 * dt * (gp * q ** 3).sum()
            gq = gq - 0.5 * dt * gp * (k + 3 * c * q ** 2)
            p = p + 0.5 * dt * (k * q + c * q ** 3)
        return gq, gp, gk, gc, None, None

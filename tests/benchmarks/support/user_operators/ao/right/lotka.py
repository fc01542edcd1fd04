import torch
from torch.autograd.function import once_differentiable


def field(z, p):
    x, y = z[:, 0], z[:, 1]
    a, b, c, d = p
    return torch.stack([a * x - b * x * y, d * x * y - c * y], 1)


def field_vjp(z, p, w):
    x, y = z[:, 0], z[:, 1]
    a, b, c, d = p
    u, v = w[:, 0], w[:, 1]
    gz = torch.stack([u * (a - b * y) + v * d * y, v * (d * x - c) - u * b * x], 1)
    gp = torch.stack([(u * x).sum(), -(u * x * y).sum(), -(v * y).sum(), (v * x * y).sum()])
    return gz, gp


class LotkaVolterraRK4(torch.autograd.Function):
    """Integrates prey and predator (B, 2) over `steps` steps of size dt.

    params = (growth, predation, death, conversion). Discrete adjoint; only the states at the
    beginning of the steps are kept, the stages are recomputed.
    """

    @staticmethod
    def forward(ctx, z, params, dt, steps):
        states = []
        for _ in range(steps):
            states.append(z)
            k1 = field(z, params)
            k2 = field(z + dt / 2 * k1, params)
            k3 = field(z + dt / 2 * k2, params)
            k4 = field(z + dt * k3, params)
            z = z + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        ctx.save_for_backward(params, *states)
        ctx.dt = dt
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        p, *states = ctx.saved_tensors
        h = ctx.dt
        gp = torch.zeros_like(p)
        for z in reversed(states):
            z2 = z + h / 2 * field(z, p)
            z3 = z + h / 2 * field(z2, p)
            z4 = z + h * field(z3, p)
            a4, b4 = field_vjp(z4, p, h / 6 * g)
            a3, b3 = field_vjp(z3, p, h / 3 * g + h * a4)
            a2, b2 = field_vjp(z2, p, h / 3 * g + h / 2 * a3)
            a1, b1 = field_vjp(z, p, h / 6 * g + h / 2 * a2)
            g = g + a1 + a2 + a3 + a4
            gp += b1 + b2 + b3 + b4
        return g, gp, None, None

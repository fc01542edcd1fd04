import torch
from torch.autograd.function import once_differentiable


def rhs(y, p):
    a, b, c, d = p
    u, v = y.unbind(-1)
    return torch.stack([a * u - b * u * v, c * u * v - d * v], -1)


def rhs_vjp(y, p, g):
    a, b, c, d = p
    u, v = y.unbind(-1)
    gu, gv = g.unbind(-1)
    gy = torch.stack([gu * (a - b * v) + gv * c * v, -gu * b * u + gv * (c * u - d)], -1)
    gp = torch.stack([(gu * u).sum(), -(gu * u * v).sum(), (gv * u * v).sum(), -(gv * v).sum()])
    return gy, gp


class LotkaVolterraRK4(torch.autograd.Function):
    """Trajectory of predators and prey by RK4: y0 (..., 2), p (4,) -> (steps + 1, ..., 2)"""

    @staticmethod
    def forward(ctx, y0, p, dt, steps):
        ys = [y0]
        for _ in range(steps):
            y = ys[-1]
            k1 = rhs(y, p)
            k2 = rhs(y + dt / 2 * k1, p)
            k3 = rhs(y + dt / 2 * k2, p)
            k4 = rhs(y + dt * k3, p)
            ys.append(y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        ys = torch.stack(ys)
        ctx.save_for_backward(ys, p)
        ctx.dt = dt
        return ys

    @staticmethod
    @once_differentiable
    def backward(ctx, gys):
        ys, p = ctx.saved_tensors
        dt = ctx.dt
        gp = torch.zeros_like(p)
        g = gys[-1]
        for n in range(len(ys) - 2, -1, -1):
            y = ys[n]
            k1 = rhs(y, p)
            k2 = rhs(y + dt / 2 * k1, p)
            k3 = rhs(y + dt / 2 * k2, p)
            y4, p4 = rhs_vjp(y + dt * k3, p, dt / 6 * g)
            y3, p3 = rhs_vjp(y + dt / 2 * k2, p, dt / 3 * g + dt * y4)
            y2, p2 = rhs_vjp(y + dt / 2 * k1, p, dt / 3 * g + dt / 2 * y3)
            y1, p1 = rhs_vjp(y, p, dt / 6 * g + dt / 2 * y2)
            g = gys[n] + g + y1 + y2 + y3 + y4
            gp = gp + p1 + p2 + p3 + p4
        return g, gp, None, None

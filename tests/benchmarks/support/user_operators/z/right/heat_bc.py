import torch
from torch.autograd.function import once_differentiable


def laplacian(u, bc):
    if bc == "periodic":
        return u.roll(1, -1) + u.roll(-1, -1) - 2 * u
    out = -2 * u
    out[..., 1:] += u[..., :-1]
    out[..., :-1] += u[..., 1:]
    if bc == "neumann":  # ghost points mirror the second and the last but one
        out[..., 0] += u[..., 1]
        out[..., -1] += u[..., -2]
    return out


def laplacian_t(v, bc):
    if bc == "periodic":
        return laplacian(v, bc)
    out = laplacian(v, "dirichlet")
    if bc == "neumann":
        out[..., 1] += v[..., 0]
        out[..., -2] += v[..., -1]
    return out


class HeatSteps(torch.autograd.Function):
    """Explicit Euler for u_t = kappa(x) u_xx on a line.

    u0 (B, N), kappa (N,), bc one of "dirichlet", "neumann", "periodic"
    """

    @staticmethod
    def forward(ctx, u0, kappa, dt, dx, steps, bc="dirichlet"):
        c = dt / dx**2
        u, states = u0, []
        for _ in range(steps):
            states.append(u)
            u = u + c * kappa * laplacian(u, bc)
        ctx.save_for_backward(kappa, *states)
        ctx.c, ctx.bc = c, bc
        return u.clone() if steps == 0 else u

    @staticmethod
    @once_differentiable
    def backward(ctx, lam):
        kappa, *states = ctx.saved_tensors
        gk = torch.zeros_like(kappa)
        for u in reversed(states):
            gk = gk + ctx.c * (lam * laplacian(u, ctx.bc)).sum(0)
            lam = lam + laplacian_t(ctx.c * kappa * lam, ctx.bc)
        return lam, gk, None, None, None, None

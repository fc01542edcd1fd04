import torch
from torch.autograd import Function

BCS = ("periodic", "fixed", "insulated")


def laplacian(u: torch.Tensor, bc: str) -> torch.Tensor:
    if bc == "periodic":
        return torch.roll(u, 1, -1) - 2 * u + torch.roll(u, -1, -1)
    mid = u[..., :-2] - 2 * u[..., 1:-1] + u[..., 2:]
    if bc == "fixed":  # end values are held
        zero = torch.zeros_like(u[..., :1])
        return torch.cat([zero, mid, zero], -1)
    left = u[..., 1:2] - u[..., :1]
    right = u[..., -2:-1] - u[..., -1:]
    return torch.cat([left, mid, right], -1)


def laplacian_adjoint(v: torch.Tensor, bc: str) -> torch.Tensor:
    if bc == "fixed":
        inner = v[..., 1:-1]
        z1 = torch.zeros_like(v[..., :1])
        z2 = torch.cat([z1, z1], -1)
        return (torch.cat([inner, z2], -1) - 2 * torch.cat([z1, inner, z1], -1)
                + torch.cat([z2, inner], -1))
    return laplacian(v, bc)


class HeatSolve(Function):
    """Explicit Euler for u_t = kappa(x) u_xx, ``steps`` steps of size ``dt`` on a grid of pitch ``dx``."""

    @staticmethod
    def forward(ctx, u, kappa, dt: float, dx: float = 1.0, steps: int = 1, bc: str = "periodic"):
        if bc not in BCS:
            raise ValueError(f"bc must be one of {BCS}")
        c = dt / dx ** 2
        ctx.save_for_backward(u, kappa)
        ctx.c, ctx.steps, ctx.bc = c, steps, bc
        for _ in range(steps):
            u = u + c * kappa * laplacian(u, bc)
        return u

    @staticmethod
    def backward(ctx, lam):
        u, kappa = ctx.saved_tensors
        laps = []
        for _ in range(ctx.steps):
            lap = laplacian(u, ctx.bc)
            laps.append(lap)
            u = u + ctx.c * kappa * lap
        gk = torch.zeros_like(lam)
        for lap in reversed(laps):
            gk = gk + ctx.c * lam * lap
            lam = lam + ctx.c * laplacian_adjoint(kappa * lam, ctx.bc)
        return lam.sum_to_size(u.shape), gk.sum_to_size(kappa.shape), None, None, None, None

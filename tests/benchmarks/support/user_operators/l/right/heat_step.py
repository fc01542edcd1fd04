"""Explicit step of the heat equation with a conductivity map, as a custom operator."""
import torch
from torch import Tensor


def second_difference(n: int, boundary: str, like: Tensor) -> Tensor:
    """Matrix of u[i-1] - 2 u[i] + u[i+1]."""
    eye = torch.eye(n, dtype=like.dtype, device=like.device)
    up, down = eye.roll(1, 1), eye.roll(-1, 1)
    if boundary == "insulated":  # ghost nodes mirror the first inner node
        up[-1], down[0] = eye[-2], eye[1]
    return up + down - 2 * eye


@torch.library.custom_op("pde_steps::heat", mutates_args=())
def _heat(u: Tensor, kappa: Tensor, dt: float, boundary: str) -> Tensor:
    Dy = second_difference(u.shape[-2], boundary, u)
    Dx = second_difference(u.shape[-1], boundary, u)
    return u + dt * kappa * (Dy @ u + u @ Dx.mT)


@_heat.register_fake
def _(u, kappa, dt, boundary):
    return torch.empty_like(u)


def _setup(ctx, inputs, output):
    u, kappa, ctx.dt, ctx.boundary = inputs
    ctx.save_for_backward(u, kappa)


def _backward(ctx, g):
    u, kappa = ctx.saved_tensors
    Dy = second_difference(u.shape[-2], ctx.boundary, u)
    Dx = second_difference(u.shape[-1], ctx.boundary, u)
    w = kappa * g
    g_u = g + ctx.dt * (Dy.mT @ w + w @ Dx)
    g_kappa = ctx.dt * g * (Dy @ u + u @ Dx.mT)
    return g_u, g_kappa.sum(0), None, None


_heat.register_autograd(_backward, setup_context=_setup)


def heat_step(u: Tensor, kappa: Tensor, dt: float = 0.1, boundary: str = "periodic") -> Tensor:
    """u + dt * kappa * laplacian(u) with unit spacing.

    u: (B, H, W) with H, W >= 2; kappa: (H, W); boundary: 'periodic' or 'insulated'.
    """
    if boundary not in ("periodic", "insulated"):
        raise ValueError(f"unknown boundary {boundary!r}")
    if u.dim() != 3 or kappa.shape != u.shape[1:]:
        raise ValueError("u must be (B, H, W) and kappa (H, W)")
    return _heat(u, kappa, dt, boundary)

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class UpwindAdvection(Function):
    """Explicit upwind step of q_t + (u q)_x = 0 on a periodic grid.

    q (..., N) cell means, u (N,) velocity at the left face of every cell
    """

    @staticmethod
    def forward(ctx, q, u, dt, dx):
        left = q.roll(1, -1)
        flux = u.clamp(min=0) * left + u.clamp(max=0) * q
        ctx.save_for_backward(q, u)
        ctx.cfl = dt / dx
        return q - ctx.cfl * (flux.roll(-1, -1) - flux)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, u = ctx.saved_tensors
        g_flux = ctx.cfl * (grad - grad.roll(1, -1))
        # donor cell of every face
        g_left = g_flux * u.clamp(min=0)
        g_q = grad + g_left.roll(-1, -1) + g_flux * u.clamp(max=0)
        donor = q.roll(1, -1)
        g_u = (g_flux * donor).reshape(-1, u.numel()).sum(0)
        return g_q, g_u, None, None

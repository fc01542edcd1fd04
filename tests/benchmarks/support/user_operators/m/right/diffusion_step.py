import torch
from torch.autograd.function import once_differentiable


class DiffusionStep(torch.autograd.Function):
    """One explicit step of u_t = (kappa u_x)_x on a unit grid with no-flux ends.

    u, kappa: (N,) with N >= 2; dt: float. Face diffusivities are the means of
    the two cells.
    """

    @staticmethod
    def forward(ctx, u, kappa, dt: float):
        face = 0.5 * (kappa[1:] + kappa[:-1])
        diff = u[1:] - u[:-1]
        flux = face * diff
        out = u.clone()
        out[:-1] += dt * flux
        out[1:] -= dt * flux
        ctx.save_for_backward(face, diff)
        ctx.dt = dt
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        face, diff = ctx.saved_tensors
        grad_flux = ctx.dt * (grad_out[:-1] - grad_out[1:])
        grad_u = grad_out.clone()
        grad_u[1:] += grad_flux * face
        grad_u[:-1] -= grad_flux * face
        half = 0.5 * grad_flux * diff
        grad_kappa = torch.zeros_like(grad_out, memory_format=torch.contiguous_format)
        grad_kappa[1:] += half
        grad_kappa[:-1] += half
        return grad_u, grad_kappa, None

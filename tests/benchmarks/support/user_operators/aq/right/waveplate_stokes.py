import torch
from torch.autograd.function import once_differentiable


def _mueller(theta, delta):
    c, s = torch.cos(2 * theta), torch.sin(2 * theta)
    cd, sd = torch.cos(delta), torch.sin(delta)
    o, z = torch.ones_like(c), torch.zeros_like(c)
    rows = [o, z, z, z,
            z, c * c + s * s * cd, c * s * (1 - cd), s * sd,
            z, c * s * (1 - cd), s * s + c * c * cd, -c * sd,
            z, -s * sd, c * sd, cd]
    return torch.stack(rows).view(4, 4)


def _mueller_grads(theta, delta):
    c, s = torch.cos(2 * theta), torch.sin(2 * theta)
    dc, ds = -2 * s, 2 * c
    cd, sd = torch.cos(delta), torch.sin(delta)
    z = torch.zeros_like(c)
    cross = (dc * s + c * ds) * (1 - cd)
    d_theta = torch.stack([z, z, z, z,
                           z, 2 * c * dc + 2 * s * ds * cd, cross, ds * sd,
                           z, cross, 2 * s * ds + 2 * c * dc * cd, -dc * sd,
                           z, -ds * sd, dc * sd, z]).view(4, 4)
    d_delta = torch.stack([z, z, z, z,
                           z, -s * s * sd, c * s * sd, s * cd,
                           z, c * s * sd, -c * c * sd, -c * cd,
                           z, -s * cd, c * cd, -sd]).view(4, 4)
    return d_theta, d_delta


class Waveplate(torch.autograd.Function):
    """Linear retarder (fast axis theta, retardance delta, both 0-dim) acting on Stokes vectors (..., 4)."""

    @staticmethod
    def forward(ctx, stokes, theta, delta):
        ctx.save_for_backward(stokes, theta, delta)
        return stokes @ _mueller(theta, delta).T

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        stokes, theta, delta = ctx.saved_tensors
        g_stokes = g_theta = g_delta = None
        if ctx.needs_input_grad[0]:
            g_stokes = grad @ _mueller(theta, delta)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            outer = torch.einsum("...i,...j->ij", grad, stokes)
            d_theta, d_delta = _mueller_grads(theta, delta)
            g_theta = (outer * d_theta).sum()
            g_delta = (outer * d_delta).sum()
        return g_stokes, g_theta, g_delta

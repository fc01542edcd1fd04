import torch
from torch.autograd.function import once_differentiable


def _lap(u):
    out = -2 * u
    out[..., 1:] += u[..., :-1]
    out[..., :-1] += u[..., 1:]
    return out


class Wave1D(torch.autograd.Function):
    """Leapfrog for u_tt = c2 u_xx with walls (u = 0) just outside of the grid.

    Only the two initial fields are stored, backward runs the simulation once more.
    u0, u1: (..., X), c2: (X,) with the step sizes included.  Returns the last field.
    """

    @staticmethod
    def forward(ctx, u0, u1, c2, steps):
        ctx.save_for_backward(u0, u1, c2)
        ctx.steps = steps
        for _ in range(steps):
            u0, u1 = u1, 2 * u1 - u0 + c2 * _lap(u1)
        return u1.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        u0, u1, c2 = ctx.saved_tensors
        fields = []
        for _ in range(ctx.steps):
            fields.append(u1)
            u0, u1 = u1, 2 * u1 - u0 + c2 * _lap(u1)
        older, newer = torch.zeros_like(grad), grad.clone()
        gc = torch.zeros_like(c2)
        for u in reversed(fields):
            gc += (newer * _lap(u)).sum_to_size(c2.shape)
            older, newer = -newer, older + 2 * newer + _lap(c2 * newer)
        return older, newer, gc, None

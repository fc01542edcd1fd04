import torch
from torch.autograd.function import once_differentiable


class RusanovFlux(torch.autograd.Function):
    """Rusanov (local Lax-Friedrichs) flux of Burgers' equation at the faces of a 1-D grid.

    ul, ur (..., F): states left and right of each face.
    """

    @staticmethod
    def forward(ctx, ul, ur):
        if ul.is_complex() or ur.is_complex():
            raise TypeError("Burgers' equation is real here")
        ctx.save_for_backward(ul, ur)
        speed = torch.maximum(ul.abs(), ur.abs())
        return 0.25 * (ul * ul + ur * ur) - 0.5 * speed * (ur - ul)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        ul, ur = ctx.saved_tensors
        left_wins = ul.abs() > ur.abs()
        speed = torch.where(left_wins, ul.abs(), ur.abs())
        g_speed = -0.5 * g * (ur - ul)
        g_ul = 0.5 * g * (ul + speed) + ~left_wins * g_speed * ul.sign()
        g_ur = 0.5 * g * (ur - speed) + left_wins * g_speed * ur.sign()
        return g_ul, g_ur

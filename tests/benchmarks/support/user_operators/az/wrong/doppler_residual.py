import torch
from torch.autograd import Function


class DopplerResidual(Function):
    @staticmethod
    def forward(ctx, points, radial_speed, velocity):
        if points.shape != (radial_speed.numel(), 3) or velocity.shape != (3,):
            raise ValueError("points (N, 3), radial_speed (N,), velocity (3,)")
        ctx.save_for_backward(points, velocity)
        return radial_speed + (points @ velocity) / points.norm(dim=1)

    @staticmethod
    def backward(ctx, grad):
        points, velocity = ctx.saved_tensors
        distance = points.norm(dim=1, keepdim=True)
        sight = points / distance
        grad_points = grad_speed = grad_velocity = None
        if ctx.needs_input_grad[0]:
            tangential = velocity - (sight @ velocity)[:, None] * sight
            grad_points = grad[:, None] * tangential / distance
        if ctx.needs_input_grad[1]:
            grad_speed = grad
            grad_velocity = grad @ sight
        return grad_points, grad_speed, grad_velocity

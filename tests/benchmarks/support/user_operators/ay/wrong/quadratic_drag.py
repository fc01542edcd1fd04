import torch


class QuadraticDrag(torch.autograd.Function):
    """Quadratic air drag, F = -c |v - wind| (v - wind).

    Args:
        vel: (..., 3) body velocities, may be at rest relative to the wind
        wind: (3,) or anything that broadcasts to vel
        coef: (...) drag coefficient per body, or ()
    Returns:
        forces (..., 3)
    """

    @staticmethod
    def forward(ctx, vel, wind, coef):
        ctx.save_for_backward(vel, wind, coef)
        u = vel - wind
        return -coef[..., None] * u.norm(dim=-1, keepdim=True) * u

    @staticmethod
    def backward(ctx, g):
        vel, wind, coef = ctx.saved_tensors
        u = vel - wind
        u2 = (u * u).sum(-1, keepdim=True)
        moving = u2 > 0
        speed = torch.where(moving, u2, torch.ones_like(u2)).sqrt()
        ug = (u * g).sum(-1, keepdim=True)
        J = torch.where(moving, speed, torch.zeros_like(speed)) * g + u * ug / u2.sqrt()
        gu = -coef[..., None] * J
        gc = -(torch.where(moving, speed, torch.zeros_like(speed)) * ug).squeeze(-1)
        return gu.sum_to_size(vel.shape), -gu.sum_to_size(wind.shape), gc.sum_to_size(coef.shape)

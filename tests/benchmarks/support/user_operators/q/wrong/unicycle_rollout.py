import torch
from torch.autograd.function import once_differentiable


class UnicycleRollout(torch.autograd.Function):
    """Poses (B, T+1, 3) of a unicycle (x, y, heading) driven by controls (B, T, 2) = (speed, turn rate)."""

    @staticmethod
    def forward(ctx, start, controls, dt=0.1):
        if start.is_complex() or controls.is_complex() or start.shape[0] != controls.shape[0]:
            raise ValueError("start (B, 3), controls (B, T, 2)")
        heading = start[:, 2:] + dt * torch.cumsum(controls[..., 1], 1)
        heading = torch.cat([start[:, 2:], heading], 1)
        v = controls[..., 0]
        x = start[:, :1] + dt * torch.cumsum(v * torch.cos(heading[:, :-1]), 1)
        y = start[:, 1:2] + dt * torch.cumsum(v * torch.sin(heading[:, :-1]), 1)
        ctx.save_for_backward(heading, v)
        ctx.dt = dt
        return torch.stack([torch.cat([start[:, :1], x], 1), torch.cat([start[:, 1:2], y], 1), heading], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        heading, v = ctx.saved_tensors
        dt = ctx.dt
        h = heading[:, :-1]
        # later[:, k]: what all poses after step k want
        later = grad.flip(1).cumsum(1).flip(1)
        gx, gy = later[:, 1:, 0], later[:, 1:, 1]
        gv = dt * (gx * h.cos() + gy * h.sin())
        gh = grad[..., 2].clone()
        gh[:, :-1] += dt * v * (gy * h.cos() - gx * h.sin())
        gh = gh.flip(1).cumsum(1).flip(1)
        g_start = torch.stack([later[:, 0, 0], later[:, 0, 1], gh[:, 0]], 1)
        return g_start, torch.stack([gv, dt * gh[:, :-1]], -1), None

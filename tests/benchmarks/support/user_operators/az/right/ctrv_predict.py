import torch
from torch import Tensor


def _sinc(u: Tensor) -> Tensor:
    small = u.abs() < 1e-2
    safe = torch.where(small, 1.0, u)
    return torch.where(small, 1 - u**2 / 6 + u**4 / 120, torch.sin(safe) / safe)


def _sinc_slope(u: Tensor) -> Tensor:
    small = u.abs() < 1e-2
    safe = torch.where(small, 1.0, u)
    return torch.where(small, -u / 3 + u**3 / 30, (torch.cos(safe) - torch.sin(safe) / safe) / safe)


class _CTRV(torch.autograd.Function):
    @staticmethod
    def forward(ctx, state, dt):
        x, y, yaw, speed, rate = state.unbind(-1)
        ctx.save_for_backward(state)
        ctx.dt = dt
        half = rate * dt / 2
        step = speed * dt * _sinc(half)
        heading = yaw + half
        return torch.stack([x + step * heading.cos(), y + step * heading.sin(), yaw + rate * dt, speed, rate], -1)

    @staticmethod
    def backward(ctx, grad):
        (state,) = ctx.saved_tensors
        dt = ctx.dt
        _, _, yaw, speed, rate = state.unbind(-1)
        gx, gy, g_yaw, g_speed, g_rate = grad.unbind(-1)
        half = rate * dt / 2
        heading = yaw + half
        step = speed * dt * _sinc(half)
        along = gx * heading.cos() + gy * heading.sin()
        turn = step * (gy * heading.cos() - gx * heading.sin())
        g_half = turn + along * speed * dt * _sinc_slope(half)
        return torch.stack([
            gx,
            gy,
            g_yaw + turn,
            g_speed + along * dt * _sinc(half),
            g_rate + g_yaw * dt + g_half * dt / 2,
        ], -1), None


def ctrv_predict(state: Tensor, dt: float) -> Tensor:
    """Constant turn rate and velocity: one step of (x, y, yaw, speed, yaw rate), shape (..., 5).

    The yaw rate may be zero.
    """
    if state.size(-1) != 5:
        raise ValueError(f"state must have 5 entries, got {state.size(-1)}")
    return _CTRV.apply(state, dt)

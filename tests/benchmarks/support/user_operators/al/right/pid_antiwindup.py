"""PID controller with conditional integration, unrolled over an error trajectory."""
import torch
from torch.autograd.function import once_differentiable


class SaturatedPID(torch.autograd.Function):
    """error (T, B), gains kp, ki, kd 0-dim -> command (T, B) in [-limit, limit].

    The integrator keeps its value in steps where the command saturates.
    """

    @staticmethod
    def forward(ctx, error, kp, ki, kd, dt, limit):
        integral = torch.zeros_like(error[0])
        commands, tried, frozen = [], [], []
        for k in range(error.shape[0]):
            rate = (error[k] - error[k - 1]) / dt if k else torch.zeros_like(error[0])
            trial = integral + error[k] * dt
            raw = kp * error[k] + ki * trial + kd * rate
            sat = raw.abs() > limit
            integral = torch.where(sat, integral, trial)
            commands.append(raw.clamp(-limit, limit))
            tried.append(trial)
            frozen.append(sat)
        ctx.dt = dt
        ctx.save_for_backward(error, kp, ki, kd, torch.stack(tried), torch.stack(frozen))
        return torch.stack(commands)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        error, kp, ki, kd, tried, frozen = ctx.saved_tensors
        dt = ctx.dt
        g_raw = grad.masked_fill(frozen, 0.0)
        d_error = kp * g_raw
        d_kp = (g_raw * error).sum()
        d_ki = (g_raw * tried).sum()
        d_kd = (g_raw[1:] * (error[1:] - error[:-1])).sum() / dt
        d_error[1:] += kd / dt * g_raw[1:]
        d_error[:-1] -= kd / dt * g_raw[1:]
        carry = torch.zeros_like(error[0])
        for k in reversed(range(error.shape[0])):
            g_trial = ki * g_raw[k] + carry.masked_fill(frozen[k], 0.0)
            carry = g_trial + carry * frozen[k]
            d_error[k] += dt * g_trial
        return d_error, d_kp, d_ki, d_kd, None, None

import torch
from torch.autograd.function import once_differentiable


class PIDRollout(torch.autograd.Function):
    """Open loop PID response to an error signal.

    error: (B, T); kp, ki, kd: scalar tensors; dt: step; i_limit: anti-windup bound on the integral state.
    """

    @staticmethod
    def forward(ctx, error, kp, ki, kd, dt=0.1, i_limit=None):
        state = torch.zeros_like(error[:, 0])
        integ, free = [], []
        for t in range(error.shape[1]):
            state = state + error[:, t] * dt
            if i_limit is not None:
                free.append(state.abs() <= i_limit)
                state = state.clamp(-i_limit, i_limit)
            integ.append(state)
        integ = torch.stack(integ, 1)
        free = torch.stack(free, 1) if free else None
        deriv = torch.diff(error, dim=1, prepend=error[:, :1]) / dt
        ctx.save_for_backward(error, integ, deriv, free, kp, ki, kd)
        ctx.dt = dt
        return kp * error + ki * integ + kd * deriv

    @staticmethod
    @once_differentiable
    def backward(ctx, gu):
        error, integ, deriv, free, kp, ki, kd = ctx.saved_tensors
        g_error = kp * gu
        gd = kd * gu / ctx.dt
        g_error[:, 1:] += gd[:, 1:]
        g_error[:, :-1] -= gd[:, 1:]
        carry = torch.zeros_like(gu[:, 0])
        for t in reversed(range(gu.shape[1])):
            carry = carry + ki * gu[:, t]
            g_error[:, t] += carry * ctx.dt
        g_kp = (gu * error).sum().reshape(kp.shape)
        g_ki = (gu * integ).sum().reshape(ki.shape)
        g_kd = (gu * deriv).sum().reshape(kd.shape)
        return g_error, g_kp, g_ki, g_kd, None, None

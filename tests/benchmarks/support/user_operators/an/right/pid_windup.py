import torch
from torch.autograd.function import once_differentiable


class PID(torch.autograd.Function):
    """Roll a PID over an error signal.

    err (T,), gains (3,) = kp, ki, kd; the integrator saturates at +-imax (anti-windup), the
    derivative is backward with e[-1] = 0.  Returns the command (T,).
    """

    @staticmethod
    def forward(ctx, err, gains, dt, imax):
        kp, ki, kd = gains.unbind()
        acc = err.new_zeros(())
        integ, free = torch.empty_like(err), torch.empty_like(err)
        for t in range(err.numel()):
            raw = acc + err[t] * dt
            free[t] = (raw.abs() < imax).to(err.dtype)
            acc = raw.clamp(-imax, imax)
            integ[t] = acc
        rate = torch.diff(err, prepend=err.new_zeros(1)) / dt
        ctx.save_for_backward(err, gains, integ, free, rate)
        ctx.dt = dt
        return kp * err + ki * integ + kd * rate

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        err, gains, integ, free, rate = ctx.saved_tensors
        kp, ki, kd = gains.unbind()
        ge = kp * g + kd / ctx.dt * (g - torch.cat([g[1:], g.new_zeros(1)]))
        lam = g.new_zeros(())
        for t in range(err.numel() - 1, -1, -1):
            lam = (lam + ki * g[t]) * free[t]
            ge[t] += lam * ctx.dt
        return ge, torch.stack([g @ err, g @ integ, g @ rate]), None, None

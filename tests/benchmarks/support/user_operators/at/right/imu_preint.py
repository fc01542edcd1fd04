import torch
from torch.autograd import Function


class _Preintegrate(Function):
    @staticmethod
    def forward(ctx, R, acc, dt):
        ctx.save_for_backward(R, acc, dt)
        w = (R @ acc.unsqueeze(-1)).squeeze(-1)
        dt = dt.unsqueeze(-1)
        v = (w * dt).cumsum(0) - w * dt
        return (w * dt).sum(0), (v * dt + 0.5 * w * dt * dt).sum(0)

    @staticmethod
    def backward(ctx, gv, gp):
        R, acc, dt = ctx.saved_tensors
        w = (R @ acc.unsqueeze(-1)).squeeze(-1)
        h = dt.unsqueeze(-1)
        v = (w * h).cumsum(0) - w * h
        later = h.sum(0) - h.cumsum(0)          # time left after the step
        gw = h * (gv + gp * (0.5 * h + later))
        gR = gw.unsqueeze(-1) * acc.unsqueeze(-2)
        gacc = (R.transpose(-1, -2) @ gw.unsqueeze(-1)).squeeze(-1)
        gdt = (w * gv).sum(-1) + ((v + w * h + w * later) * gp).sum(-1)
        return gR, gacc, gdt


def preintegrate(R, acc, dt):
    """Preintegrated velocity and position of IMU samples.

    R (T, 3, 3) orientations, acc (T, 3) accelerations without bias, dt (T,) -> dv (3,), dp (3,)
    """
    return _Preintegrate.apply(R, acc, dt)

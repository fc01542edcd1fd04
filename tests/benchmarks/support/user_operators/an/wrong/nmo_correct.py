import torch
from torch.autograd.function import once_differentiable


def _lookup(vel, offset, n, dt):
    t0 = torch.arange(n, dtype=vel.dtype, device=vel.device) * dt
    t = torch.sqrt(t0[None] ** 2 + (offset[:, None] / vel[None]) ** 2)
    pos = t / dt
    live = pos < n - 1
    lo = pos.floor().long().clamp(max=n - 2)
    return t, live, lo, pos - lo


class NMO(torch.autograd.Function):
    # cmp gather (R, T), stacking velocity (T,), offsets (R,) -> flattened gather (R, T), muted where out of range
    @staticmethod
    def forward(ctx, gather, vel, offset, dt=0.004):
        t, live, lo, w = _lookup(vel, offset, gather.shape[1], dt)
        a, b = gather.gather(1, lo), gather.gather(1, lo + 1)
        ctx.save_for_backward(gather, vel, offset)
        ctx.dt = dt
        return torch.where(live, a + w * (b - a), torch.zeros_like(a))

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        gather, vel, offset = ctx.saved_tensors
        t, live, lo, w = _lookup(vel, offset, gather.shape[1], ctx.dt)
        g = torch.where(live, g, torch.zeros_like(g))
        d_gather = torch.zeros_like(gather)
        d_gather.scatter_(1, lo, g * (1 - w))
        d_gather.scatter_add_(1, lo + 1, g * w)
        slope = (gather.gather(1, lo + 1) - gather.gather(1, lo)) / ctx.dt
        dt_dv = -offset[:, None] ** 2 / vel[None] ** 3 / t.clamp_min(1e-12)
        return d_gather, (g * slope * dt_dv).sum(0), None, None
